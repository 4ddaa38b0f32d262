// 4-bit checkpoints of other toolkits that are not taken in: errors name the layer, the place and the reason.
#include <gmock/gmock.h>

#include "load/convert.h"
#include "load/export_qserve.h"
#include "load/foreign_testing.h"
#include "load/import_w4.h"
#include "testing/paths.h"

namespace oasr::load {
namespace {

using ::testing::HasSubstr;

constexpr auto kGroups = W4Form::per_group, kChannels = W4Form::per_channel;
constexpr auto kPre = ZeroDomain::pre_scaled, kPost = ZeroDomain::post_scaled;
const std::string kLayer = "model.decoder.layers.1.fc2";  // [128, 256]

struct Damage {
  const char* what;
  std::function<void(ForeignFile&)> damage;
  std::string claims, message;
  ErrorCode code = ErrorCode::bad_checkpoint;
};

struct ImportW4Refusals : LoadFixture {
  oasr::testing::TemporaryFolder temporary;
  int folders = 0;

  fs::path folder_of(const ForeignModel& model) {
    const auto folder = temporary.path() / std::to_string(folders++);
    model.write_documents(folder);
    return folder;
  }
  std::string message(const fs::path& folder, const std::string& claims, ErrorCode code) {
    const auto parsed = parse_w4_claims(claims);
    if (!parsed) return parsed.error().message();
    const auto loaded = load_for_conversion(folder, {}, claims.empty() ? nullptr : &*parsed, context);
    if (loaded) return "loaded";
    EXPECT_EQ(loaded.error().code, code) << loaded.error().message();
    return loaded.error().message();
  }
  // QServe's tensors of the model, with each damage.
  void expect_refused(const ForeignModel& model, std::span<const Damage> rows) {
    for (const Damage& row : rows) {
      SCOPED_TRACE(row.what);
      ForeignFile file = as_qserve(model);
      row.damage(file);
      const auto folder = folder_of(model);
      file.write_safetensors_file(folder / "model.safetensors");
      EXPECT_THAT(message(folder, row.claims, row.code), HasSubstr(row.message));
    }
  }
};

template <class T>
void put(ForeignFile& file, const std::string& name, std::size_t i, T value) {
  std::memcpy(file.tensors.at(name).bytes.data() + i * sizeof value, &value, sizeof value);
}

std::vector<Half> halves_of(const ForeignFile& file, const std::string& name) {
  const std::string& bytes = file.tensors.at(name).bytes;
  std::vector<Half> values(bytes.size() / sizeof(Half));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

constexpr auto kClaim = ErrorCode::invalid_argument, kUnsupported = ErrorCode::unsupported;

std::function<void(ForeignFile&)> none() {
  return [](ForeignFile&) {};
}
std::function<void(ForeignFile&)> without(const std::string& suffix) {
  return [suffix](ForeignFile& file) { CHECK(file.tensors.erase(kLayer + suffix) == 1, suffix); };
}
std::function<void(ForeignFile&)> reshaped(const std::string& suffix, std::vector<std::int64_t> shape) {
  return [=](ForeignFile& file) { file.tensors.at(kLayer + suffix).shape = shape; };
}

TEST_F(ImportW4Refusals, OfPackedTensorsThatDoNotFitEachOther) {
  const std::string post = "zeros=post_scaled,order=quads";
  const Damage rows[] = {
      {"nothing", none(), post, "loaded"},
      {"no domain", none(), "group=128", "say zeros=pre_scaled (", kClaim},
      {"no order", none(), "zeros=post_scaled", "say order=quads (", kClaim},
      {"another domain", none(), "zeros=pre_scaled,order=quads", "is no zero of the domain pre_scaled"},
      {"another form", none(), post + ",group=channel",
       "group is said to be channel, but the tensors say 128", kClaim},
      {"groups of 64",
       [](ForeignFile& f) {
         for (const char* name : {".s2_scales", ".s2_zeros"}) {
           auto& tensor = f.tensors.at(kLayer + name);
           tensor.bytes += tensor.bytes;
           tensor.shape = {4, 128};
         }
       },
       post, kLayer + ": groups of 64: only groups of 128 are served", kUnsupported},
      {"no codes", without(".qweight"), post, kLayer + ": qweight is missing"},
      {"no scales of channels", without(".s1_scales"), post, kLayer + ": s1_scales is missing"},
      {"no zeros", without(".s2_zeros"), post, kLayer + ": s2_zeros is missing"},
      {"two kinds of zeros",
       [](ForeignFile& f) {
         f.add(kLayer + ".s1_szeros", StorageFormat::f16, {128}, std::vector<Half>(128));
       },
       post, kLayer + ": s2_scales and s2_zeros of groups, and s1_szeros of channels"},
      {"channels before groups", reshaped(".s2_zeros", {128, 2}), post,
       "s2_zeros is [128, 2] instead of [2, 128]"},
      {"codes of one row", reshaped(".qweight", {16384}), post,
       kLayer + ": qweight is [16384] and no matrix"},
      {"scales of another dtype",
       [](ForeignFile& f) {
         f.add(kLayer + ".s1_scales", StorageFormat::f32, {128}, std::vector<float>(128, 1.0f));
       },
       post, kLayer + ": s1_scales is float32 instead of float16"},
      {"channels that fill no tile",
       [](ForeignFile& f) {
         f.add(kLayer + ".qweight", StorageFormat::i8, {24, 128}, std::vector<std::int8_t>(24 * 128));
         f.add(kLayer + ".s1_scales", StorageFormat::f16, {24}, std::vector<Half>(24, to_half(1)));
         f.add(kLayer + ".s2_scales", StorageFormat::i8, {2, 24}, std::vector<std::int8_t>(48, 1));
         f.add(kLayer + ".s2_zeros", StorageFormat::i8, {2, 24}, std::vector<std::int8_t>(48));
       },
       post, kLayer + ": a weight [24, 256] does not fill tiles of 32 by 32", kUnsupported},
  };
  expect_refused(ForeignModel(kGroups, kPost), rows);
}

TEST_F(ImportW4Refusals, OfPackedLayersWithDamageOrThatTheModelDoesNotHave) {
  const std::string post = "zeros=post_scaled,order=quads", bias = "model.decoder.layers.0.self_attn.v_proj.bias",
                    first = "model.decoder.layers.0.encoder_attn.k_proj";
  const Damage rows[] = {
      {"a weight of another size",
       [](ForeignFile& f) {
         for (const char* name : {".qweight", ".s1_scales", ".s2_scales", ".s2_zeros"}) {
           f.tensors[kLayer + name] = f.tensors.at("model.decoder.layers.1.fc1" + std::string(name));
         }
       },
       post, kLayer + ".qweight is [256, 64] instead of [128, 128]"},
      {"a group scale of 0", [](ForeignFile& f) { put<std::int8_t>(f, kLayer + ".s2_scales", 4, 0); }, post,
       kLayer + ": channel 1, group 0: rule group_scale: 0 is outside 1..127"},
      {"a channel scale that is NaN",
       [](ForeignFile& f) { put<std::uint16_t>(f, kLayer + ".s1_scales", 2, 0x7E00); }, post,
       kLayer + ": channel 2: rule channel_scale: nan is no positive float16"},
      {"one part at full precision",
       [&](ForeignFile& f) {
         for (const char* name : {".qweight", ".s1_scales", ".s2_scales", ".s2_zeros"})
           f.tensors.erase(first + name);
         f.add(first + ".weight", StorageFormat::f32, {128, 128}, std::vector<float>(128 * 128));
       },
       post, "model.decoder.layers.0.encoder_attn.kv_proj: only some of " + first},
      {"a layer that the model has not",
       [](ForeignFile& f) { f.tensors["model.lm_head.s1_scales"] = f.tensors.at(kLayer + ".s1_scales"); },
       post, "model.lm_head: the model has no such layer to quantize"},
      {"a bias of another size",
       [&](ForeignFile& f) { f.add(bias, StorageFormat::f32, {64}, std::vector<float>(64)); }, post,
       bias + ": is [64] for 128 rows"},
      {"a bias that is infinite",
       [&](ForeignFile& f) {
         f.add(bias, StorageFormat::f32, {128},
               std::vector<float>(128, std::numeric_limits<float>::infinity()));
       },
       post, "model.decoder.layers.0.self_attn.qkv_proj.bias: element 256 is inf"},
      {"a stacked tensor beside its parts",
       [&](ForeignFile& f) {
         f.add("model.decoder.layers.0.self_attn.qkv_proj.bias", StorageFormat::f32, {384},
               std::vector<float>(384));
       },
       post, "model.decoder.layers.0.self_attn.qkv_proj.bias: is there beside what it is made of"},
      {"a tensor too much",
       [](ForeignFile& f) { f.add("odd", StorageFormat::f32, {1}, std::vector<float>(1)); }, post,
       "1 extra: odd"},
  };
  expect_refused(ForeignModel(kGroups, kPost), rows);
}

TEST_F(ImportW4Refusals, OfPackedChannels) {
  const Damage rows[] = {
      {"nothing", none(), "zeros=pre_scaled", "loaded"},
      {"an order", none(), "zeros=pre_scaled,order=quads", "channels have none", kClaim},
      {"another form", none(), "zeros=pre_scaled,group=128",
       "group is said to be 128, but the tensors say channel", kClaim},
      {"no zeros", without(".s1_szeros"), "zeros=pre_scaled", "nor s1_szeros of channels"},
      {"a zero that is no code",
       [](ForeignFile& f) { put<std::uint16_t>(f, kLayer + ".s1_szeros", 2, 0x4000); }, "zeros=pre_scaled",
       kLayer + ": channel 2: rule channel_zero: "},
  };
  expect_refused(ForeignModel(kChannels, kPre), rows);
  const Damage nan[] = {{"a zero that is NaN",
                         [](ForeignFile& f) { put<std::uint16_t>(f, kLayer + ".s1_szeros", 2, 0x7E00); },
                         "zeros=post_scaled", kLayer + ": channel 2: rule channel_zero: "}};
  expect_refused(ForeignModel(kChannels, kPost), nan);
}

TEST_F(ImportW4Refusals, OfFakeQuantizedWeights) {
  const ForeignModel model(kGroups, kPost);
  const Damage rows[] = {
      {"nothing", none(), "group=128,zeros=post_scaled", "loaded"},
      {"another domain", none(), "zeros=pre_scaled",
       "zeros is said to be pre_scaled, but the tensors say post_scaled", kClaim},
      {"another form", none(), "group=channel", "group is said to be channel, but the tensors say 128",
       kClaim},
      {"an order", none(), "order=quads", "only packed tensors have one", kClaim},
      {"a weight between two codes",
       [](ForeignFile& f) {
         const Half scale = halves_of(f, kLayer + ".weight.scale.0")[3];
         put(f, kLayer + ".weight", 3 * 256 + 130, to_half(2.5f * to_float(scale)));
       },
       "", kLayer + ": channel 3, column 130: the value 2.5"},
      {"a channel scale that is NaN",
       [](ForeignFile& f) { put<std::uint16_t>(f, kLayer + ".weight.scale.0", 3, 0x7E00); }, "",
       kLayer + ": channel 3"},
      {"a group scale that is no integer",
       [](ForeignFile& f) { put(f, kLayer + ".weight.scale.1", 7, 2.002f); }, "",
       kLayer + ": channel 3, group 1: the group scale 2.002"},
      {"a zero that is no integer", [](ForeignFile& f) { put(f, kLayer + ".weight.scaled_zero", 7, 2.002f); },
       "", kLayer + ": channel 3, group 1: the zero 2.002"},
      {"zeros of both domains",
       [](ForeignFile& f) {
         f.tensors[kLayer + ".weight.zero"] = f.tensors.at(kLayer + ".weight.scaled_zero");
       },
       "", kLayer + ": weight.zero and weight.scaled_zero"},
      {"no zeros", without(".weight.scaled_zero"), "",
       kLayer + ": neither weight.zero nor weight.scaled_zero"},
      {"no weight", without(".weight"), "", kLayer + ": weight is missing"},
      {"no scales of channels", without(".weight.scale.0"), "", kLayer + ": weight.scale.0 is missing"},
      {"groups of 64",
       [](ForeignFile& f) {
         auto& tensor = f.tensors.at(kLayer + ".weight.scale.1");
         tensor.bytes += tensor.bytes;
         tensor.shape = {128, 4};
       },
       "", kLayer + ": groups of 64", kUnsupported},
      {"scales that are too few",
       [](ForeignFile& f) {
         f.add(kLayer + ".weight.scale.0", StorageFormat::f32, {64}, std::vector<float>(64, 1.0f));
       },
       "", kLayer + ": weight.scale.0 is [64] instead of [128]"},
  };
  for (const Damage& row : rows) {
    SCOPED_TRACE(row.what);
    FakeQuantFiles files = as_fake_quant(model);
    ForeignFile all = files.model;
    all.tensors.insert(files.scales.tensors.begin(), files.scales.tensors.end());
    row.damage(all);
    const auto folder = folder_of(model);
    all.write_torch_file(folder / "model.pt");
    EXPECT_THAT(message(folder, row.claims, row.code), HasSubstr(row.message));
  }
}

TEST_F(ImportW4Refusals, OfCompressedTensors) {
  const ForeignModel model(kGroups, kPre);
  const std::string inputs =
      R"({"num_bits": 8, "type": "int", "strategy": "token", "symmetric": true, "dynamic": true})";
  struct Row {
    const char* what;
    std::string from, to, message;
    std::function<void(ForeignFile&)> damage = none();
    std::string claims = {};
    ErrorCode code = kUnsupported;
  };
  const std::string contract = "another numerical contract";
  const auto bad = ErrorCode::bad_checkpoint;
  const Row rows[] = {
      {"nothing", "", "", "loaded"},
      {"float activations", inputs,
       R"({"num_bits": 8, "type": "float", "strategy": "token", "dynamic": true})", contract},
      {"no activations", inputs, "null", "(W4A16): " + contract},
      {"static activations", "\"dynamic\": true", "\"dynamic\": false", "a dynamic scale a token"},
      {"weights of 8 bits", "\"num_bits\": 4", "\"num_bits\": 8", "weights of 8 bits"},
      {"float weights", "\"num_bits\": 4, \"type\": \"int\"", "\"num_bits\": 4, \"type\": \"float\"",
       "type \"float\""},
      {"groups of 64", "\"group_size\": 128", "\"group_size\": 64", "weights in groups of 64"},
      {"reordered groups", "\"actorder\": null", "\"actorder\": \"group\"", "actorder \"group\""},
      {"another format", "pack-quantized", "marlin-24", "the format \"marlin-24\" is not read"},
      {"no groups of the configuration", "config_groups", "groups", "has no config_groups", none(), "", bad},
      {"codes twice", "", "", kLayer + ": weight and weight_packed",
       [](ForeignFile& f) {
         f.add(kLayer + ".weight", StorageFormat::i8, {128, 256}, std::vector<std::int8_t>(128 * 256));
       },
       "", bad},
      {"a shape of another weight", "", "", "but weight_shape says [128, 512]",
       [](ForeignFile& f) {
         f.add(kLayer + ".weight_shape", StorageFormat::i64, {2}, std::vector<std::int64_t>{128, 512});
       },
       "", bad},
      {"a scale that is none", "", "", kLayer + ": channel 1, group 1: the scale -1 is no positive number",
       [](ForeignFile& f) { put(f, kLayer + ".weight_scale", 3, -1.0f); }, "", bad},
      {"groups by index", "", "", kLayer + ": weight_g_idx",
       [](ForeignFile& f) {
         f.add(kLayer + ".weight_g_idx", StorageFormat::i32, {256}, std::vector<std::int32_t>(256));
       }},
      {"zeros of another dtype", "", "", kLayer + ": weight_zero_point is int8 instead of int32",
       [](ForeignFile& f) {
         f.add(kLayer + ".weight_zero_point", StorageFormat::i8, {16, 2}, std::vector<std::int8_t>(32));
       },
       "", bad},
      {"another domain", "", "", "zeros is said to be post_scaled", none(), "zeros=post_scaled", kClaim},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    ForeignFile file = as_compressed(model, true);
    row.damage(file);
    const auto folder = folder_of(model);
    model.add_to_config(folder, replaced(kCompressedConfig, row.from, row.to).c_str());
    file.write_safetensors_file(folder / "model.safetensors");
    EXPECT_THAT(message(folder, row.claims, row.code), HasSubstr(row.message));
  }
}

TEST_F(ImportW4Refusals, OfModelOptWithTheReason) {
  const ForeignModel model(kGroups, kPre);
  const auto folder = folder_of(model), other = folder_of(model);
  as_qserve(model).write_safetensors_file(folder / "model.safetensors");
  as_qserve(model).write_safetensors_file(other / "model.safetensors");
  write_text_file(
      folder / "hf_quant_config.json",
      R"({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "W4A8_AWQ", "group_size": 128}})")
      .value();
  EXPECT_THAT(message(folder, "", kUnsupported),
              HasSubstr("ModelOpt's W4A8_AWQ is another numerical contract: "
                        "activations are float8"));
  model.add_to_config(other, R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})");
  EXPECT_THAT(message(other, "", kUnsupported), HasSubstr("ModelOpt's \"NVFP4\" is not read"));
}

TEST_F(ImportW4Refusals, OfClaims) {
  const std::pair<const char*, const char*> rows[] = {
      {"group=64", "group can not be '64' (it is one of 128, channel)"},
      {"zeros=scaled", "zeros can not be 'scaled' (it is one of pre_scaled, post_scaled)"},
      {"order=", "order can not be '' (it is one of quads, pairs)"},
      {"zeros", "zeros can not be ''"},
      {"zeros=pre_scaled,zeros=pre_scaled", "'zeros' is given twice"},
      {"domain=pre_scaled", "'domain' is not known"},
  };
  for (const auto& [text, expected] : rows) {
    const auto claims = parse_w4_claims(text);
    ASSERT_FALSE(claims) << text;
    EXPECT_EQ(claims.error().code, kClaim);
    EXPECT_THAT(claims.error().message(), HasSubstr(expected));
  }
  const ForeignModel model(kGroups, kPost);
  const auto plain = temporary.path() / "plain";
  models::whisper::write_hugging_face(model.random, plain);
  EXPECT_THAT(message(plain, "group=128", kClaim), HasSubstr("has no 4-bit weights of another toolkit"));
}

TEST_F(ImportW4Refusals, OfClaimsThatAConfigurationContradicts) {
  const ForeignModel model(kGroups, kPost);
  const std::pair<const char*, const char*> rows[] = {
      {R"({"quant_method": "qoq", "wbits": 4, "group_size": 128})", "loaded"},
      {R"({"quant_method": "qoq", "wbits": 4, "group_size": -1})", "group is said to be"},
      {R"({"quant_method": "qoq", "wbits": 8, "group_size": 128})", "other bits than 4"},
  };
  for (const auto& [config, expected] : rows) {
    const auto folder = folder_of(model);
    as_qserve(model).write_safetensors_file(folder / "model.safetensors");
    model.add_to_config(folder, config);
    const std::string said = message(folder, "group=128,zeros=post_scaled,order=quads",
                                     expected == std::string("other bits than 4") ? kUnsupported : kClaim);
    EXPECT_THAT(said, HasSubstr(expected));
    EXPECT_EQ(said.find(folder.string()) == std::string::npos, expected == std::string("loaded")) << said;
  }
}

TEST_F(ImportW4Refusals, OfQuantizationThatIsNotThereOrNotKnown) {
  const ForeignModel model(kGroups, kPost);
  struct Row {
    const char* config;
    ErrorCode code;
    const char* expected;
  };
  const Row rows[] = {
      {R"({"quant_method": "qoq", "wbits": 4})", ErrorCode::bad_checkpoint, "no tensor is quantized so"},
      {R"({"quant_method": "awq", "bits": 4})", kUnsupported, R"(quantization by "awq" is not read)"},
      {R"("int4")", kUnsupported, R"(quantization by "int4" is not read)"},
  };
  for (const Row& row : rows) {
    const auto folder = folder_of(model);
    models::whisper::write_hugging_face(model.random, folder);
    model.add_to_config(folder, row.config);
    EXPECT_THAT(message(folder, "", row.code), HasSubstr(row.expected));
  }
}

TEST_F(ImportW4Refusals, OfFilesThatEndEarly) {
  const ForeignModel model(kGroups, kPost);
  const FakeQuantFiles files = as_fake_quant(model);
  for (const char* name : {"model.safetensors", "quant_model.pt", "scale.pt"}) {
    SCOPED_TRACE(name);
    const auto folder = folder_of(model);
    const std::string file = name;
    if (file == "scale.pt") files.model.write_torch_file(folder / "model.pt");
    const ForeignFile content = file == "scale.pt" ? files.scales : as_qserve(model);
    file == "model.safetensors" ? content.write_safetensors_file(folder / name)
                                : content.write_torch_file(folder / name);
    const std::string whole = read_text_file(folder / name).value();
    for (const std::size_t size : {std::size_t{0}, std::size_t{7}, whole.size() / 3, whole.size() - 1}) {
      write_text_file(folder / name, whole.substr(0, size)).value();
      const auto loaded = open_checkpoint(folder);
      ASSERT_FALSE(loaded) << size;
      EXPECT_THAT(loaded.error().message(), HasSubstr((folder / name).string()));
    }
  }
}

TEST_F(ImportW4Refusals, OfATensorInTwoFiles) {
  const ForeignModel model(kGroups, kPost);
  FakeQuantFiles files = as_fake_quant(model);
  files.scales.tensors[kLayer + ".bias"] = files.model.tensors.at(kLayer + ".bias");
  const auto folder = folder_of(model);
  files.model.write_torch_file(folder / "model.pt");
  files.scales.write_torch_file(folder / "scale.pt");
  EXPECT_THAT(message(folder, "", ErrorCode::bad_checkpoint),
              HasSubstr((folder / "scale.pt").string() + ": has the tensor '" + kLayer +
                        ".bias' of another file again"));
}

TEST_F(ImportW4Refusals, OfExports) {
  const auto source = temporary.path() / "source";
  models::whisper::write_hugging_face(ForeignModel(kGroups, kPost).random, source);
  const auto small = temporary.path() / "small";
  models::whisper::write_hugging_face(models::whisper::RandomCheckpoint(models::whisper::small_config()),
                                      small);
  const auto native = [&](const fs::path& from, const quant::QuantRequest& request) {
    const auto folder = temporary.path() / std::to_string(folders++);
    save_native(load_all(from, {.quantization = request}), folder).value();
    return folder;
  };
  const std::pair<fs::path, const char*> rows[] = {
      {source, "only an oasr folder is written as QServe's layout"},
      {native(source, {}), "the model has no 4-bit layers"},
      {native(source, {.scheme = "int8_w8a8"}),
       "encoder_attn.kv_proj: QServe's layout has no layers of int8_w8a8"},
      {native(small, {.scheme = "w4a8_g128"}), "QServe's layout has no layers of int8_w8a8"},
  };
  const auto expect_unsaved = [&](const LoadedModel& loaded, const char* expected) {
    const auto saved = save_qserve(loaded, temporary.path() / "out");
    ASSERT_FALSE(saved) << expected;
    EXPECT_EQ(saved.error().code, kUnsupported);
    EXPECT_THAT(saved.error().message(), HasSubstr(expected));
    EXPECT_FALSE(fs::exists(temporary.path() / "out"));
  };
  for (const auto& [folder, expected] : rows) expect_unsaved(load_all(folder), expected);
  // What is asked for at the same time is not stored: the way out is not the same command.
  const LoadOptions now{.quantization = {.scheme = "w4a8_g128"}};
  for (const auto& folder : {source, native(source, {})}) {
    expect_unsaved(load_all(folder, now),
                   "then convert that folder with --to qserve and without --quantization");
  }
}

TEST_F(ImportW4Refusals, OfDocumentsBesideQServesTensors) {
  const auto source = temporary.path() / "source", native = temporary.path() / "native",
             out = temporary.path() / "out";
  models::whisper::write_hugging_face(ForeignModel(kGroups, kPost).random, source);
  save_native(load_all(source, {.quantization = {.scheme = "w4a8_g128"}}), native).value();
  ASSERT_TRUE(save_qserve(load_all(native), out));
  const std::string text = read_text_file(out / kQServeDocument).value();
  const std::tuple<const char*, const char*, const char*, ErrorCode> rows[] = {
      {"\"format\"", "\"format\"", "loaded", kClaim},
      {"\"format_version\": 1", "\"format_version\": 2", "'format_version' is missing or unknown",
       ErrorCode::bad_checkpoint},
      {"\"group_size\": 128", "\"group_size\": 64", "'group_size' is missing or unknown",
       ErrorCode::bad_checkpoint},
      {"\"group_size\": 128", "\"group_size\": -1", "group is said to be channel, but the tensors say 128",
       kClaim},
      {"\"zero_domain\": \"post", "\"zero_domain\": \"pre", "is no zero of the domain pre_scaled",
       ErrorCode::bad_checkpoint},
      {"\"scale_order\"", "\"order\"", "'order' is missing or unknown", ErrorCode::bad_checkpoint},
      {"encoder.layers.0.fc1", "encoder.layers.0.fc7", "quantization names other layers than there are",
       ErrorCode::bad_checkpoint},
      {"\"quantization\": {", "\"quantization\": 1, \"x\": {", "'x' is missing or unknown",
       ErrorCode::bad_checkpoint},
      {"\"checksums\": {", "\"checksums\": 1, \"y\": {", "'y' is missing or unknown",
       ErrorCode::bad_checkpoint},
      {"\"crc32:", "\"crc:", "qserve.json: the checksum of ", ErrorCode::bad_checkpoint},
      {"layers.0.fc1.bias\": ", "layers.9.fc1.bias\": ", "layers.9.fc1.bias' of qserve.json",
       ErrorCode::bad_checkpoint},
  };
  for (const auto& [from, to, expected, code] : rows) {
    SCOPED_TRACE(to);
    write_text_file(out / kQServeDocument, replaced(text, from, to)).value();
    EXPECT_THAT(message(out, "", code), HasSubstr(expected));
  }
  write_text_file(out / kQServeDocument, text).value();
  EXPECT_THAT(message(out, "zeros=pre_scaled", kClaim),
              HasSubstr("zeros is said to be something else by qserve.json"));
  // Damage that keeps every rule: the last bit of a float.
  std::string tensors = read_text_file(out / "model.safetensors").value();
  tensors[tensors.size() / 2] ^= 1;
  write_text_file(out / "model.safetensors", tensors).value();
  EXPECT_THAT(message(out, "", ErrorCode::bad_checkpoint), HasSubstr("as in qserve.json: it is corrupt"));
}

}  // namespace
}  // namespace oasr::load
