// Decoding of every storage format, detection of every container, and the four real containers
// against each other.
#include "checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <set>

#include "base/fs.h"
#include "checkpoint/test_files.h"
#include "testing/paths.h"

namespace oasr {
namespace {

using testing::as_bytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::le;

std::vector<float> decode(StorageFormat format, Shape shape, std::string_view bytes) {
  std::vector<float> out(static_cast<std::size_t>(shape.elements()));
  const auto status = decode_to_float({format, shape, as_bytes(bytes), {}}, out);
  EXPECT_TRUE(status) << status.error().message();
  return out;
}

bool same_bits(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; }

TEST(Decode, WidensEveryHalfAndBFloat16AsTheTensorModuleDoes) {
  std::string bytes = "x";  // one byte before: unaligned
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    bytes += le(static_cast<std::uint16_t>(bits));
  }
  const auto halves = decode(StorageFormat::f16, {0x10000}, std::string_view(bytes).substr(1));
  const auto bfloats = decode(StorageFormat::bf16, {0x10000}, std::string_view(bytes).substr(1));
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = to_float(Half{static_cast<std::uint16_t>(bits)});
    EXPECT_TRUE(std::isnan(half) ? std::isnan(halves[bits]) : same_bits(halves[bits], half))
        << bits;
    EXPECT_TRUE(same_bits(bfloats[bits], to_float(BFloat16{static_cast<std::uint16_t>(bits)})))
        << bits;
  }
}

TEST(Decode, ReadsIntegersAndFloats) {
  EXPECT_THAT(decode(StorageFormat::f64, {2}, le(0.5) + le(-3.0)), ElementsAre(0.5f, -3.0f));
  EXPECT_THAT(decode(StorageFormat::f32, {}, le(0.1f)), ElementsAre(0.1f));
  EXPECT_THAT(decode(StorageFormat::i64, {1}, le<std::int64_t>(-7)), ElementsAre(-7.0f));
  EXPECT_THAT(decode(StorageFormat::i8, {2}, "\xFF\x7F"), ElementsAre(-1.0f, 127.0f));
  EXPECT_THAT(decode(StorageFormat::u8, {1}, "\xFF"), ElementsAre(255.0f));
  float out = 0;
  EXPECT_FALSE(decode_to_float({StorageFormat::boolean, {1}, as_bytes("\1"), {}}, {&out, 1}));
}

TEST(Decode, KnowsEveryFormatButTruthValues) {
  const std::string scale = le(1.0f);
  for (const auto& [format, name] : storage_format_names()) {
    const Shape shape{1, 32};
    const std::string zeros(*storage_bytes(format, shape), '\0');
    std::vector<float> out(32, 1.0f);
    const auto status = decode_to_float({format, shape, as_bytes(zeros), as_bytes(scale)}, out);
    EXPECT_EQ(status.has_value(), format != StorageFormat::boolean) << name;
  }
}

TEST(Decode, ReadsFloat8) {
  // E4M3: 0x38 = 1, 0x7E = 448, 0x01 = 2^-9, 0xC0 = -2. E5M2: 0x3C = 1, 0x7B = 57344, 0x01 = 2^-16.
  EXPECT_THAT(decode(StorageFormat::f8_e4m3, {4}, "\x38\x7E\x01\xC0"),
              ElementsAre(1.0f, 448.0f, 0x1p-9f, -2.0f));
  EXPECT_THAT(decode(StorageFormat::f8_e5m2, {3}, "\x3C\x7B\x01"),
              ElementsAre(1.0f, 57344.0f, 0x1p-16f));
  EXPECT_TRUE(std::isnan(decode(StorageFormat::f8_e4m3, {1}, "\x7F")[0]));
  EXPECT_TRUE(std::isnan(decode(StorageFormat::f8_e4m3, {1}, "\xFF")[0]));
  EXPECT_TRUE(std::isinf(decode(StorageFormat::f8_e5m2, {1}, "\x7C")[0]));
}

// One block whose element i has the code (7 i) mod 32, or mod 16 for four bits.
struct Block {
  std::string nibbles = std::string(16, '\0');
  std::uint32_t fifth = 0;
};
int code_of(int i, int bits) { return 7 * i % (1 << bits); }
Block block_of(int bits) {
  Block block;
  for (int i = 0; i < 32; ++i) {
    const int code = code_of(i, bits);
    block.nibbles[static_cast<std::size_t>(i % 16)] |=
        static_cast<char>((code & 15) << (i < 16 ? 0 : 4));
    block.fifth |= static_cast<std::uint32_t>(code >> 4) << i;
  }
  return block;
}

TEST(Decode, ReadsGgmlBlocks) {
  const std::string scale = le<std::uint16_t>(0x3800);    // 0.5
  const std::string minimum = le<std::uint16_t>(0xC400);  // -4
  const auto four = block_of(4), five = block_of(5);
  std::string eight = scale;
  for (int i = 0; i < 32; ++i) eight += static_cast<char>(4 * i - 64);
  const auto q4_0 = decode(StorageFormat::q4_0, {32}, scale + four.nibbles);
  const auto q4_1 = decode(StorageFormat::q4_1, {32}, scale + minimum + four.nibbles);
  const auto q5_0 = decode(StorageFormat::q5_0, {32}, scale + le(five.fifth) + five.nibbles);
  const auto q5_1 = decode(StorageFormat::q5_1, {2, 32},
                           scale + minimum + le(five.fifth) + five.nibbles + scale + scale +
                               le(five.fifth) + five.nibbles);
  const auto q8_0 = decode(StorageFormat::q8_0, {32}, eight);
  for (int i = 0; i < 32; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const auto code4 = static_cast<float>(code_of(i, 4)), code5 = static_cast<float>(code_of(i, 5));
    EXPECT_EQ(q4_0[at], (code4 - 8) * 0.5f);
    EXPECT_EQ(q4_1[at], code4 * 0.5f - 4);
    EXPECT_EQ(q5_0[at], (code5 - 16) * 0.5f);
    EXPECT_EQ(q5_1[at], code5 * 0.5f - 4);
    EXPECT_EQ(q5_1[32 + at], code5 * 0.5f + 0.5f);
    EXPECT_EQ(q8_0[at], static_cast<float>(4 * i - 64) * 0.5f);
  }
}

TEST(StorageBytes, KnowsBlocksAndOverflow) {
  EXPECT_EQ(storage_bytes(StorageFormat::q5_1, Shape{3, 64}), 3u * 2 * 24);
  EXPECT_EQ(storage_bytes(StorageFormat::q8_0, Shape{64, 3}), std::nullopt);
  EXPECT_EQ(storage_bytes(StorageFormat::f32, Shape{}), 4u);
  EXPECT_EQ(storage_bytes(StorageFormat::q4_0, Shape{}), std::nullopt);
  EXPECT_EQ(storage_bytes(StorageFormat::f32, Shape{0, 5}), 0u);
  EXPECT_EQ(storage_bytes(StorageFormat::f64, Shape{std::int64_t{1} << 62}), std::nullopt);
}

class OpenCheckpoint : public ::testing::Test {
 protected:
  void put(const std::string& name, std::string_view text) {
    fs::create_directories((folder_.path() / name).parent_path());
    ASSERT_TRUE(write_text_file(folder_.path() / name, text));
  }
  std::string error(const std::string& name) {
    const auto checkpoint = open_checkpoint(folder_.path() / name);
    return checkpoint ? "" : checkpoint.error().message();
  }
  testing::TemporaryFolder folder_;
  const std::string weights_ = testing::safetensors_file(
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "1234");
};

TEST_F(OpenCheckpoint, ReadsAHuggingFaceFolderWithItsDocumentsAndTokenizer) {
  put("m/config.json", R"({"model_type":"whisper"})");
  put("m/generation_config.json", "{}");
  put("m/model.safetensors", weights_);
  put("m/vocab.json", R"({"a":0})");
  put("m/merges.txt", "#version: 0.2\n");
  for (const char* path : {"m", "m/", "m/model.safetensors"}) {
    const auto checkpoint = open_checkpoint(folder_.path() / path);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message();
    EXPECT_EQ(checkpoint->container, "huggingface");
    EXPECT_EQ(checkpoint->documents.size(), 2u);
    EXPECT_EQ(checkpoint->tokenizer.kind, "vocab_merges");
    EXPECT_EQ(checkpoint->tokenizer.vocab_json, R"({"a":0})");
    EXPECT_EQ(checkpoint->files.size(), 5u);
    EXPECT_TRUE(checkpoint->tensors.find("a"));
  }
  put("m/tokenizer.json", "{}");
  EXPECT_EQ(open_checkpoint(folder_.path() / "m")->tokenizer.kind, "tokenizer_json");
}

TEST_F(OpenCheckpoint, ReadsShards) {
  put("config.json", R"({"model_type":"whisper"})");
  put("model-00001-of-00001.safetensors", weights_);
  put("model.safetensors.index.json", R"({"weight_map":{"a":"model-00001-of-00001.safetensors"}})");
  const auto checkpoint = open_checkpoint(folder_.path());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_TRUE(checkpoint->tensors.find("a"));
  EXPECT_EQ(checkpoint->files.size(), 3u);
}

TEST_F(OpenCheckpoint, SaysWhatIsMissingInAHuggingFaceFolder) {
  put("m/model.safetensors", weights_);
  EXPECT_THAT(error("m"), HasSubstr("neither the oasr_config.json of an oasr folder nor the config.json"));
  put("n/config.json", R"({"model_type":"whisper"})");
  EXPECT_THAT(error("n"), HasSubstr("no model.safetensors"));
  put("n/pytorch_model.bin", "x");
  EXPECT_THAT(error("n"), HasSubstr("pytorch_model.bin: "));
  put("n/model.safetensors", "x");
  EXPECT_THAT(error("n"), HasSubstr("model.safetensors: safetensors file ends early"));
}

TEST_F(OpenCheckpoint, SaysWhatAPathIsInstead) {
  const auto file = [&](std::string_view content) {
    put("file", content);
    return error("file");
  };
  EXPECT_THAT(error("nowhere"), HasSubstr("no such file"));
  EXPECT_THAT(file(""), HasSubstr("an empty file"));
  EXPECT_THAT(file("GGUF\3"), HasSubstr("a GGUF file"));
  EXPECT_THAT(file("\x08\x08\x12\x07pytorch"), HasSubstr("an ONNX model"));
  EXPECT_THAT(file("hello\n"), HasSubstr("a text file"));
  EXPECT_THAT(file("RIFF1234WAVE"), HasSubstr("an audio file"));
  EXPECT_THAT(file("version https://git-lfs.github.com/spec/v1\n"), HasSubstr("Git LFS pointer"));
  EXPECT_THAT(file(weights_), HasSubstr("safetensors file that is not called"));
  EXPECT_THAT(file("\x01\x02\x03"), HasSubstr("unknown kind"));
  EXPECT_THAT(file("PK\3\4 no more"), HasSubstr("zip archive"));
  EXPECT_THAT(file("hello\n"),
              HasSubstr("give an oasr folder (oasr_config.json and model.safetensors), a Hugging"));
  fs::create_directory(folder_.path() / "empty");
  EXPECT_THAT(error("empty"), HasSubstr("an empty folder"));
  put("wenet/train.yaml", "x");
  EXPECT_THAT(error("wenet"), HasSubstr("a WeNet folder"));
  put("pt/base.pt", "x");
  EXPECT_THAT(error("pt"), HasSubstr("base.pt (give that file itself)"));
  ASSERT_EQ(::mkfifo((folder_.path() / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(error("pipe"), HasSubstr("neither a file nor a folder"));
}

// The native container's are in native_test.cc.
TEST_F(OpenCheckpoint, RefusesAPipeForAFileOfTheFolder) {
  const auto with_pipe = [&](const fs::path& name) {
    const auto path = folder_.path() / name;
    const auto kept = read_text_file(path).value_or("");
    fs::remove(path);
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    const std::string message = error(name.parent_path().string());
    fs::remove(path);
    put(name.string(), kept);
    return message;
  };
  const auto says = [](const std::string& name) {
    return HasSubstr(name + ": is not a regular file but a named pipe");
  };
  put("hf/config.json", R"({"model_type":"whisper"})");
  put("hf/model.safetensors", weights_);
  put("hf/tokenizer.json", "{}");
  ASSERT_TRUE(open_checkpoint(folder_.path() / "hf"));
  for (const std::string name : {"config.json", "model.safetensors", "tokenizer.json"}) {
    EXPECT_THAT(with_pipe(fs::path("hf") / name), says(name));
  }
  fs::remove(folder_.path() / "hf" / "tokenizer.json");
  put("hf/vocab.json", R"({"a":0})");
  put("hf/merges.txt", "#version: 0.2\n");
  for (const std::string name : {"vocab.json", "merges.txt"}) {
    EXPECT_THAT(with_pipe(fs::path("hf") / name), says(name));
  }
}

TEST(Containers, HaveUniqueNamesAndRefuseAMissingPath) {
  std::set<std::string_view> names;
  for (const auto& reader : container_readers()) {
    EXPECT_TRUE(names.insert(reader.name).second);
    EXPECT_EQ(reader.detect("/nonexistent/path"), 0) << reader.name;
    EXPECT_FALSE(reader.read("/nonexistent/path")) << reader.name;
  }
}

// OpenAI's name for a Hugging Face tensor: the reverse of what converters do.
std::string openai_name(std::string name) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {"model.", ""},
      {"layers.", "blocks."},
      {"encoder_attn_layer_norm", "cross_attn_ln"},
      {"self_attn_layer_norm", "attn_ln"},
      {"final_layer_norm", "mlp_ln"},
      {"encoder_attn", "cross_attn"},
      {"self_attn", "attn"},
      {"q_proj", "query"},
      {"k_proj", "key"},
      {"v_proj", "value"},
      {"out_proj", "out"},
      {"fc1", "mlp.0"},
      {"fc2", "mlp.2"},
      {"embed_tokens", "token_embedding"},
      {"embed_positions.weight", "positional_embedding"},
      {"encoder.layer_norm", "encoder.ln_post"},
      {"decoder.layer_norm", "decoder.ln"}};
  for (const auto& [from, to] : kRules) {
    if (const auto at = name.find(from); at != name.npos) name.replace(at, from.size(), to);
  }
  return name;
}

std::vector<float> floats(const StoredTensor& tensor) {
  std::vector<float> out(static_cast<std::size_t>(tensor.shape.elements()));
  EXPECT_TRUE(decode_to_float(tensor, out));
  return out;
}

class RealWeights : public ::testing::TestWithParam<const char*> {
 protected:
  static std::optional<Checkpoint> open(const std::string& format) {
    const auto path = testing::real_weights(GetParam(), format);
    if (!path) return std::nullopt;
    auto checkpoint = open_checkpoint(*path);
    EXPECT_TRUE(checkpoint) << checkpoint.error().message();
    return checkpoint ? std::optional(std::move(*checkpoint)) : std::nullopt;
  }
};

TEST_P(RealWeights, AreTheSameNumbersInHuggingFaceOpenAiAndGgmlContainers) {
  const auto hf = open("hf");
  if (!hf) GTEST_SKIP() << "no real weights here (set OASR_TEST_WEIGHTS)";
  for (const char* format : {"openai-pt", "ggml"}) {
    const auto other = open(format);
    if (!other) continue;
    EXPECT_EQ(other->tensors.tensors.size(), hf->tensors.tensors.size());
    for (const auto& [name, tensor] : hf->tensors.tensors) {
      const auto twin = other->tensors.find(openai_name(name));
      ASSERT_TRUE(twin) << twin.error().message();
      EXPECT_EQ(twin->shape.elements(), tensor.shape.elements());
      ASSERT_EQ(floats(*twin), floats(tensor)) << format << " " << name;
    }
  }
}

TEST_P(RealWeights, AreTheSameNumbersInCTranslate2) {
  const auto ct2 = open("ct2"), pt = open("openai-pt");
  if (!ct2 || !pt) GTEST_SKIP() << "no real weights here (set OASR_TEST_WEIGHTS)";
  EXPECT_EQ(ct2->documents.at("dims"), pt->documents.at("dims"));
  const auto equal = [&](const std::string& stacked, const std::vector<std::string>& parts) {
    std::vector<float> joined;
    for (const auto& part : parts) {
      const auto values = floats(*pt->tensors.find(part));
      joined.insert(joined.end(), values.begin(), values.end());
    }
    EXPECT_EQ(floats(*ct2->tensors.find(stacked)), joined) << stacked;
  };
  equal("encoder/conv1/weight", {"encoder.conv1.weight"});
  equal("decoder/projection/weight", {"decoder.token_embedding.weight"});
  equal("encoder/position_encodings/encodings", {"encoder.positional_embedding"});
  equal("encoder/layer_1/self_attention/linear_0/weight",
        {"encoder.blocks.1.attn.query.weight", "encoder.blocks.1.attn.key.weight",
         "encoder.blocks.1.attn.value.weight"});
  equal("decoder/layer_2/attention/linear_1/weight",
        {"decoder.blocks.2.cross_attn.key.weight", "decoder.blocks.2.cross_attn.value.weight"});
  equal("decoder/layer_3/ffn/linear_1/weight", {"decoder.blocks.3.mlp.2.weight"});
}

TEST_P(RealWeights, LieInTheMappedFile) {
  if (!open("hf")) GTEST_SKIP() << "no real weights here (set OASR_TEST_WEIGHTS)";
  for (const char* format : {"hf", "ct2", "openai-pt", "ggml"}) {
    const auto checkpoint = open(format);
    if (!checkpoint) continue;
    EXPECT_EQ(checkpoint->tensors.owners.size(), 1u) << format;  // the file, and no copy
  }
}

INSTANTIATE_TEST_SUITE_P(Whisper, RealWeights, ::testing::Values("tiny.en", "base"),
                         [](const auto& info) { return std::string(info.param).substr(0, 4); });

}  // namespace
}  // namespace oasr
