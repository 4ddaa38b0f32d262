// Pickles and OpenAI's .pt files: what is read, and what stays inert or is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "checkpoint/containers.h"
#include "checkpoint/pickle.h"
#include "checkpoint/test_files.h"
#include "checkpoint/torch_archive.h"

namespace oasr {
namespace {

using testing::as_bytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::le;
using testing::torch_file;
namespace p = testing::pickle;

const std::string kSix = le(1.0f) + le(2.0f) + le(3.0f) + le(4.0f) + le(5.0f) + le(6.0f);
const std::string kStorage = p::storage("FloatStorage", "0", 6);
const std::string kMatrix = p::tensor(kStorage, 0, {2, 3}, {3, 1});

Result<Checkpoint> read(const std::string& file) {
  return read_openai(FileBytes{"x.pt", as_bytes(file), nullptr});
}

// The values of the tensor "w" of a checkpoint with this one tensor, or the error.
struct Outcome {
  std::vector<float> values;
  std::string error;
};
Outcome load(const std::string& tensor, const std::string& storage = kSix) {
  const auto file = torch_file(p::checkpoint(p::text("w") + tensor), {{"0", storage}});
  const auto checkpoint = read(file);
  if (!checkpoint) return {{}, checkpoint.error().message()};
  const auto stored = *checkpoint->tensors.find("w");
  Outcome outcome;
  outcome.values.resize(static_cast<std::size_t>(stored.shape.elements()));
  if (auto status = decode_to_float(stored, outcome.values); !status) {
    outcome.error = status.error().message();
  }
  return outcome;
}

TEST(OpenAi, ReadsDimsAndTensorsInPlace) {
  const auto file = torch_file(p::checkpoint(p::text("w") + kMatrix), {{"0", kSix}});
  const auto checkpoint = read(file);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_EQ(checkpoint->container, "openai");
  EXPECT_EQ((*parse_json(checkpoint->documents.at("dims"), "dims"))["n_text_layer"], 2);
  const auto w = *checkpoint->tensors.find("w");
  EXPECT_EQ(w.shape, (Shape{2, 3}));
  EXPECT_EQ(w.bytes.data(), as_bytes(file).data() + file.find(kSix));
  EXPECT_EQ(checkpoint->tokenizer.kind, "none");
}

TEST(OpenAi, ReadsEveryWayInWhichTorchRebuildsATensor) {
  EXPECT_THAT(load(kMatrix).values, ElementsAre(1, 2, 3, 4, 5, 6));
  const auto plain = p::call(p::global("torch._utils", "_rebuild_tensor"),
                             kStorage + p::integer(2) + p::integers({2}) + p::integers({1}));
  EXPECT_THAT(load(plain).values, ElementsAre(3, 4));
  const auto sized =
      p::call(p::global("torch._utils", "_rebuild_tensor"),
              kStorage + p::integer(0) + p::call(p::global("torch", "Size"), p::integers({1})) +
                  p::integers({1}));
  EXPECT_THAT(load(sized).values, ElementsAre(1));
  const auto parameter = p::call(p::global("torch._utils", "_rebuild_parameter"),
                                 kMatrix + "\x89" + p::ordered_dict(""));
  EXPECT_THAT(load(parameter).values, ElementsAre(1, 2, 3, 4, 5, 6));
  const auto subclass =
      p::call(p::global("torch._tensor", "_rebuild_from_type_v2"),
              p::global("torch._utils", "_rebuild_tensor") + p::global("my", "Tensor") +
                  p::tuple(kStorage + p::integer(0) + p::integers({2}) + p::integers({1})) + "N");
  EXPECT_THAT(load(subclass).values, ElementsAre(1, 2));
  const auto untyped = p::tuple(p::text("storage") + p::global("torch.storage", "UntypedStorage") +
                                p::text("0") + p::text("cpu") + p::integer(24)) +
                       "Q";
  const auto v3 = p::call(p::global("torch._utils", "_rebuild_tensor_v3"),
                          untyped + p::integer(0) + p::integers({3}) + p::integers({1}) + "\x89" +
                              p::ordered_dict("") + p::global("torch", "float64"));
  EXPECT_EQ(load(v3).values.size(), 3u);
  const auto unknown = p::call(p::global("torch._utils", "_rebuild_tensor_v3"),
                               untyped + p::integer(0) + p::integers({3}) + p::integers({1}) +
                                   "\x89" + p::ordered_dict("") + p::global("torch", "float4"));
  EXPECT_THAT(load(unknown).error, HasSubstr("elements of a type that is not read"));
  EXPECT_THAT(load(p::tensor(kStorage, 6, {0, 3}, {3, 1})).values, ElementsAre());
  EXPECT_THAT(load(p::tensor(kStorage, 5, {}, {})).values, ElementsAre(6));
}

TEST(OpenAi, CopiesViewsThatAreNotRowMajor) {
  EXPECT_THAT(load(p::tensor(kStorage, 0, {3, 2}, {1, 3})).values, ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(load(p::tensor(kStorage, 1, {3}, {2})).values, ElementsAre(2, 4, 6));
  EXPECT_THAT(load(p::tensor(kStorage, 4, {3}, {0})).values, ElementsAre(5, 5, 5));
  EXPECT_THAT(load(p::tensor(kStorage, 0, {1, 2, 1}, {99, 1, 99})).values, ElementsAre(1, 2));
}

TEST(OpenAi, SharesAStorageBetweenTiedWeights) {
  const auto file =
      torch_file(p::checkpoint(p::text("a") + kMatrix + p::text("b") + kMatrix), {{"0", kSix}});
  const auto checkpoint = read(file);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_EQ(checkpoint->tensors.find("a")->bytes.data(),
            checkpoint->tensors.find("b")->bytes.data());
}

TEST(OpenAi, RefusesViewsThatLeaveOrExpandTheirStorage) {
  EXPECT_THAT(load(p::tensor(kStorage, 1, {2, 3}, {3, 1})).error, HasSubstr("reaches outside"));
  EXPECT_THAT(load(p::tensor(kStorage, 7, {1}, {1})).error, HasSubstr("reaches outside"));
  EXPECT_THAT(load(p::tensor(kStorage, 0, {2, 3}, {4, 1})).error, HasSubstr("reaches outside"));
  EXPECT_THAT(load(p::tensor(kStorage, 0, {2}, {-1})).error, HasSubstr("negative stride"));
  EXPECT_THAT(load(p::tensor(kStorage, -1, {2}, {1})).error, HasSubstr("unknown description"));
  EXPECT_THAT(load(p::tensor(kStorage, 0, {1 << 30, 1 << 30}, {0, 0})).error,
              HasSubstr("expands its storage"));
  EXPECT_THAT(load(p::tensor(kStorage, 0, {7}, {0})).error, HasSubstr("expands its storage"));
  EXPECT_THAT(load(p::tensor(kStorage, 0, {INT32_MAX, INT32_MAX, INT32_MAX}, {0, 0, 0})).error,
              HasSubstr("unknown"));
  EXPECT_THAT(load(p::tensor(kStorage, 0, {2, 3}, {3})).error, HasSubstr("unknown description"));
  EXPECT_THAT(load(p::tensor(kStorage, 0, {-2}, {1})).error, HasSubstr("unknown description"));
  // Strides whose product with the extent wraps around 2^64.
  const auto wide = "\x8A\x08" + le<std::int64_t>(INT64_MAX);
  const auto wrapping =
      p::call(p::global("torch._utils", "_rebuild_tensor"),
              kStorage + p::integer(0) + p::integers({4, 2}) + p::tuple(wide + wide));
  EXPECT_THAT(load(wrapping).error, HasSubstr("reaches outside"));
}

TEST(OpenAi, BoundsWhatManyCopiedViewsTakeTogether) {
  std::string state;
  for (int i = 0; i < 2000; ++i) {
    state += p::text("w" + std::to_string(i)) + p::tensor("h\x07", 0, {64, 64}, {1, 64});
  }
  const auto shared = p::storage("FloatStorage", "0", 4096) + "q\x07" + "0";
  const auto file = torch_file(
      p::whole(shared +
               p::dict(p::text("dims") + p::dims() + p::text("model_state_dict") + p::dict(state))),
      {{"0", std::string(4096 * 4, 'x')}});
  EXPECT_THAT(read(file).error().message(), HasSubstr("more than the file"));
}

TEST(OpenAi, RefusesStoragesThatDoNotMatch) {
  EXPECT_THAT(load(p::tensor(p::storage("FloatStorage", "0", 5), 0, {2}, {1})).error,
              HasSubstr("24 bytes, not 5"));
  EXPECT_THAT(load(p::tensor(p::storage("FloatStorage", "0", -6), 0, {2}, {1})).error,
              HasSubstr("not -6"));
  EXPECT_THAT(load(p::tensor(p::storage("FloatStorage", "1", 6), 0, {2}, {1})).error,
              HasSubstr("(data/1) is missing"));
  EXPECT_THAT(load(p::tensor(p::storage("ComplexFloatStorage", "0", 3), 0, {2}, {1})).error,
              HasSubstr("torch.ComplexFloatStorage, which is not read"));
  EXPECT_THAT(load(p::tensor(p::storage("FloatStorage", "../data.pkl", 6), 0, {2}, {1})).error,
              HasSubstr("is missing"));
  EXPECT_THAT(load(p::tensor(p::text("s"), 0, {2}, {1})).error, HasSubstr("is a text"));
  EXPECT_THAT(load(kMatrix, kSix + "x").error, HasSubstr("25 bytes"));
}

TEST(OpenAi, NeverCallsWhatThePickleNames) {
  const auto attack = p::call(p::global("os", "system"), p::text("touch /tmp/owned"));
  // As a tensor, as the state dict and as the whole: refused by name.
  EXPECT_THAT(load(attack).error, HasSubstr("'w' is a call of os.system, not a tensor"));
  const auto error = [](const std::string& pickle) {
    return read(torch_file(pickle, {})).error().message();
  };
  EXPECT_THAT(error(p::whole(attack)), HasSubstr("a call of os.system, not a dict"));
  EXPECT_THAT(
      error(p::whole(p::dict(p::text("dims") + p::dims() + p::text("model_state_dict") + attack))),
      HasSubstr("model_state_dict is a call of os.system"));
  // Wrapped in a rebuild, and as a reduced callable.
  EXPECT_THAT(load(p::call(p::global("torch._utils", "_rebuild_parameter"), attack)).error,
              HasSubstr("os.system"));
  EXPECT_THAT(load(p::call(attack, "")).error,
              HasSubstr("a call of a call of os.system, not a tensor"));
  EXPECT_THAT(load(p::tensor(attack, 0, {1}, {1})).error, HasSubstr("os.system"));
  // Beside what is read: inert, and the tensors load.
  const auto beside =
      p::whole(p::dict(p::text("dims") + p::dims() + p::text("optimizer") + attack + "}b" +
                       p::text("model_state_dict") + p::dict(p::text("w") + kMatrix)));
  EXPECT_TRUE(read(torch_file(beside, {{"0", kSix}})));
}

TEST(OpenAi, SaysWhatAnotherTorchFileIs) {
  const auto error = [](const std::string& file) { return read(file).error().message(); };
  const auto keys = [&](const char* key) {
    return error(torch_file(p::whole(p::dict(p::text(key) + "N")), {}));
  };
  EXPECT_THAT(keys("encoder.global_cmvn.mean"), HasSubstr("a WeNet checkpoint"));
  EXPECT_THAT(keys("model.encoder.conv1.weight"), HasSubstr("a Hugging Face pytorch_model.bin"));
  EXPECT_THAT(keys("strange"), HasSubstr("begins with: strange"));
  EXPECT_THAT(error(testing::zip_file({{.name = "a.txt", .content = "1"}})),
              HasSubstr("without a data.pkl"));
  EXPECT_THAT(error(testing::zip_file(
                  {{.name = "m/data.pkl", .content = p::whole("}")}, {.name = "m/constants.pkl"}})),
              HasSubstr("TorchScript"));
  EXPECT_THAT(error(testing::zip_file({{.name = "m/data.pkl", .content = p::whole("}")},
                                       {.name = "m/byteorder", .content = "big"}})),
              HasSubstr("big-endian"));
  EXPECT_THAT(error(std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15)),
              HasSubstr("before version 1.6"));
  EXPECT_THAT(error("not a zip"), HasSubstr("zip"));
}

TEST(OpenAi, RefusesCompressedTensorsAndWrongChecksums) {
  const auto pickle = p::checkpoint(p::text("w") + kMatrix);
  const auto deflated =
      testing::zip_file({{.name = "a/data.pkl", .content = pickle, .deflate = true},
                         {.name = "a/data/0", .content = kSix, .deflate = true}});
  EXPECT_THAT(read(deflated).error().message(), HasSubstr("'a/data/0' is compressed"));
  const auto corrupt =
      testing::zip_file({{.name = "a/data.pkl", .content = pickle, .crc_error = 1}});
  EXPECT_THAT(read(corrupt).error().message(), HasSubstr("wrong CRC-32"));
  const auto of_weights = testing::zip_file({{.name = "a/data.pkl", .content = pickle},
                                             {.name = "a/data/0", .content = kSix, .crc_error = 1}});
  EXPECT_THAT(read(of_weights).error().message(), HasSubstr("'a/data/0' has a wrong CRC-32"));
}

// torch.serialization.set_crc32_options(False) leaves zeros.
TEST(OpenAi, ReadsFilesWithoutChecksums) {
  const auto pickle = p::checkpoint(p::text("w") + kMatrix);
  const auto file = testing::zip_file({{.name = "a/data.pkl", .content = pickle, .crc_error = testing::crc_of(pickle)},
                                       {.name = "a/data/0", .content = kSix, .crc_error = testing::crc_of(kSix)}});
  EXPECT_TRUE(read(file)) << read(file).error().message();
}

TEST(OpenAi, RefusesDictsWithOddKeys) {
  const auto state = [](const std::string& items) {
    return read(torch_file(p::checkpoint(items), {{"0", kSix}})).error().message();
  };
  EXPECT_THAT(state(p::text("w") + kMatrix + p::text("w") + kMatrix), HasSubstr("'w' twice"));
  EXPECT_THAT(state(p::integer(1) + kMatrix), HasSubstr("a whole number as a key"));
  const auto dims = p::whole(p::dict(p::text("dims") + p::dict(p::text("n_mels") + p::text("80")) +
                                     p::text("model_state_dict") + p::dict("")));
  EXPECT_THAT(read(torch_file(dims, {})).error().message(), HasSubstr("n_mels"));
}

TEST(OpenAi, RefusesEveryTruncationAndSurvivesEveryMutation) {
  const auto file = torch_file(p::checkpoint(p::text("w") + kMatrix), {{"0", kSix}});
  ASSERT_TRUE(read(file));
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(read(file.substr(0, size))) << size;
  }
  // The pickle's checksum would hide most of it: change the pickle before it is packed.
  const auto pickle = p::checkpoint(p::text("w") + kMatrix);
  for (std::size_t at = 0; at < pickle.size(); ++at) {
    (void)read(torch_file(pickle.substr(0, at), {{"0", kSix}}));
    for (const int flip : {0x01, 0x10, 0x80, 0xFF}) {
      auto changed = pickle;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      (void)read(torch_file(changed, {{"0", kSix}}));
    }
  }
}

std::string parse_error(const std::string& bytes) {
  const auto pickle = Pickle::parse(as_bytes(bytes));
  return pickle ? "" : pickle.error().message();
}

TEST(Pickle, ReadsTheValuesOfAllProtocols) {
  using namespace std::string_literals;  // the pickle has zero bytes
  const auto program =
      "\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00(K\x05M\x34\x12J\xFE\xFF\xFF\xFF\x8A\x01\xFF"
      "\x8A\x00G\x3F\xF8\x00\x00\x00\x00\x00\x00\x8C\x02hi\x94h\x00N\x88t."s;
  const auto pickle = *Pickle::parse(as_bytes(program));
  const auto& items = pickle[pickle.root()].items;
  ASSERT_EQ(items.size(), 10u);
  const std::int64_t integers[] = {5, 0x1234, -2, -1, 0};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(pickle[items[i]].integer, integers[i]);
  EXPECT_EQ(pickle[items[5]].real, 1.5);
  EXPECT_EQ(pickle[items[6]].text, "hi");
  EXPECT_EQ(items[6], items[7]);  // the same object, recalled
  EXPECT_EQ(pickle[items[8]].kind, PickleKind::none);
  EXPECT_EQ(pickle[items[9]].kind, PickleKind::boolean);
}

TEST(Pickle, HoldsCyclesAndAMillionNestedTuples) {
  const auto cycle =
      *Pickle::parse(as_bytes("]q\x01h\x01"
                              "a."));
  EXPECT_EQ(cycle[cycle.root()].items[0], cycle.root());
  EXPECT_EQ(parse_error(")" + std::string(1'000'000, '\x85') + "."), "");
  EXPECT_THAT(parse_error(std::string(3'000'000, ')') + "."),
              HasSubstr("more than 2,097,152 objects"));
  EXPECT_THAT(parse_error(std::string(1'000'000, '(') + "."), HasSubstr("wrong height"));
}

TEST(Pickle, RefusesBrokenPrograms) {
  EXPECT_THAT(parse_error("."), HasSubstr("wrong height"));
  EXPECT_THAT(parse_error("NN."), HasSubstr("wrong height"));
  EXPECT_THAT(parse_error("N"), HasSubstr("ends early"));
  EXPECT_THAT(parse_error("\x85."), HasSubstr("empty stack"));
  EXPECT_THAT(parse_error("N(\x85."), HasSubstr("empty stack"));  // not below the mark
  EXPECT_THAT(parse_error("t."), HasSubstr("MARK is missing"));
  EXPECT_THAT(parse_error("h\x01."), HasSubstr("never remembered"));
  EXPECT_THAT(parse_error("q\x01."), HasSubstr("empty stack"));
  EXPECT_THAT(parse_error("NNa."), HasSubstr("can hold none"));
  EXPECT_THAT(parse_error("](K\1."), HasSubstr("wrong height"));
  EXPECT_THAT(parse_error("}(Nu."), HasSubstr("without a value"));
  EXPECT_THAT(parse_error("cos\nsystem"), HasSubstr("line without an end"));
  EXPECT_THAT(parse_error("NN\x93."), HasSubstr("global without a name"));
  EXPECT_THAT(parse_error("\x82\x01."), HasSubstr("opcode 0x82 at byte 0"));
  EXPECT_THAT(parse_error("\x80\x06N."), HasSubstr("protocol 6"));
  EXPECT_THAT(parse_error("X\xFF\xFF\xFF\xFF"
                          "abc."),
              HasSubstr("ends early"));
  EXPECT_THAT(parse_error(std::string("\x8D\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"
                                      "abc.",
                                      13)),
              HasSubstr("ends early"));
}

}  // namespace
}  // namespace oasr
