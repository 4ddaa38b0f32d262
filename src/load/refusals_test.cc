// Every refusal around quantization that a user can meet, with its text, through load_model() where there is a
// way through it: one table, a row a refusal. The rules behind them are tested in quant/refusals_test.cc, damage
// of bytes in checkpoint/native_damage_test.cc, groups of 4-bit weights in w4a8_refusals_test.cc.
#include <gtest/gtest.h>

#include <functional>

#include "load/convert.h"
#include "load/testing.h"
#include "models/whisper/int8_support.h"
#include "testing/environment.h"
#include "testing/paths.h"

namespace oasr::load {
namespace {

using models::whisper::NativeTensors;
using models::whisper::RandomCheckpoint;
using quant::QuantRequest;

const std::string kFc1 = "model.encoder.layers.0.fc1", kFc2 = "model.encoder.layers.0.fc2";
const std::string kConv = "model.encoder.conv1";

// A calibrated checkpoint of random numbers: convolutions, fc2 and kv_proj at a static scale.
struct QuantizedFolder : LoadFixture {
  RandomCheckpoint random{models::whisper::small_config()};
  NativeTensors native = models::whisper::calibrated_tensors(random);
  oasr::testing::TemporaryFolder temporary;
  int written = 0;

  std::filesystem::path write() {
    const auto folder = temporary.path() / std::to_string(written++);
    NativeContent content;
    content.architecture = "whisper";
    content.source_container = "huggingface";
    content.documents = random.checkpoint.documents;
    content.tokenizer = random.checkpoint.tokenizer;
    content.quantization = dump_json(quant::to_json(native.spec));
    content.tensors = native.sources();
    CHECK(write_native(folder, content).has_value(), "the folder is written");
    return folder;
  }
  // Writes what `native` has become, and loads it.
  Result<LoadedModel> try_load(const QuantRequest& request = {}) {
    return load_model(write(), {.quantization = request}, context);
  }
  // Loads the full-precision checkpoint as it was asked.
  Result<LoadedModel> online(const QuantRequest& request,
                             const models::whisper::Config& config = models::whisper::small_config()) {
    return load_checkpoint(RandomCheckpoint(config).checkpoint, {.quantization = request}, context);
  }
  void add_floats(const std::string& name, const Shape& shape) {
    const std::vector<float> ones(static_cast<std::size_t>(shape.elements()), 1.0f);
    native.tensors.add(name, StorageFormat::f32, shape, quant::bytes_of(ones));
  }
  void erase(const std::string& name) { native.tensors.slots.erase(name); }
  // The tensor `name` under another one.
  void rename(const std::string& name, const std::string& to) {
    const auto tensor = native.tensors.slots.at(name);
    const std::vector<std::byte> bytes(tensor.bytes.begin(), tensor.bytes.end());
    native.tensors.add(to, tensor.format, tensor.shape, bytes);
    erase(name);
  }
};

Status status_of(const auto& result) {
  if (result) return {};
  return unexpected(result.error());
}

// What is tried on a fresh folder.
using Attempt = std::function<Status(QuantizedFolder&)>;
struct Row {
  std::string name;  // for the reader, and for a failure
  Attempt attempt;
  ErrorCode code;
  std::string message;  // "where: what (remedy)", FOLDER for the folder
};

constexpr auto kInvalid = ErrorCode::invalid_argument;
constexpr auto kUnsupported = ErrorCode::unsupported;
constexpr auto kBad = ErrorCode::bad_checkpoint;

Attempt online(const QuantRequest& request) {
  return [request](QuantizedFolder& folder) { return status_of(folder.online(request)); };
}
// A model whose feed-forward blocks are 100 wide.
Attempt online_unaligned(const QuantRequest& request) {
  return [request](QuantizedFolder& folder) {
    auto config = models::whisper::small_config();
    config.encoder_ffn_dim = 100;
    return status_of(folder.online(request, config));
  };
}
Attempt asked_of_a_quantized_folder(const QuantRequest& request) {
  return [request](QuantizedFolder& folder) { return status_of(folder.try_load(request)); };
}
Attempt option(const char* text) {
  return [text](QuantizedFolder&) {
    QuantRequest request;
    return quant::add_option(request, text);
  };
}
Attempt stored(const std::function<void(QuantizedFolder&)>& change) {
  return [change](QuantizedFolder& folder) {
    change(folder);
    return status_of(folder.try_load());
  };
}
Attempt stored_layer(const std::string& path, const quant::QuantizedLayer& layer) {
  return stored([=](QuantizedFolder& folder) { folder.native.spec.layers[path] = layer; });
}
// A key of oasr_config.json replaced.
Attempt configured(const char* pointer, const Json& value) {
  return [=](QuantizedFolder& folder) {
    const auto path = folder.write();
    Json config = Json::parse(read_text_file(path / "oasr_config.json").value());
    config[Json::json_pointer(pointer)] = value;
    CHECK(write_text_file(path / "oasr_config.json", config.dump()).has_value(), "the text is written");
    return status_of(load_model(path, {}, folder.context));
  };
}
Attempt under(const char* variable, const char* value) {
  return [=](QuantizedFolder& folder) {
    const oasr::testing::Variable set(variable, value);
    return status_of(folder.try_load());
  };
}

const std::vector<Row> kSchemes = {
    {"an unknown scheme", online({.scheme = "int8_w8a9"}), kInvalid,
     "quantization: 'int8_w8a9' is not a scheme (did you mean int8_w8a8? schemes: int8_w8a8, int8_w8a8_static, "
     "w4a8_g128, w4a8_chn)"},
    {"fp8", online({.scheme = "fp8_w8a8"}), kUnsupported,
     "quantization: fp8_w8a8 is not served: no kernel here multiplies fp8 (use int8_w8a8)"},
    {"fp8, static", online({.scheme = "fp8_w8a8_static"}), kUnsupported,
     "quantization: fp8_w8a8_static is not served: no kernel here multiplies fp8 (use int8_w8a8_static)"},
    {"fp8 convolutions", online({.scheme = "fp8_w8a8", .module_types = {"conv1d"}}), kUnsupported,
     "module_types: fp8_w8a8 has no kernels for conv1d (use int8_w8a8, or leave them out)"},
    {"nvfp4", online({.scheme = "nvfp4"}), kUnsupported,
     "quantization: nvfp4 is not served: no kernel here multiplies nvfp4 (use int8_w8a8)"},
    {"a static scheme online", online({.scheme = "int8_w8a8_static"}), kUnsupported,
     "quantization: int8_w8a8_static needs calibrated input scales, and loading a model calibrates nothing (write a "
     "checkpoint with `oasr quantize`, or use int8_w8a8)"},
    {"one dynamic scale for a tensor",
     [](QuantizedFolder&) {
       return quant::check_args({.granularity = quant::Granularity::per_channel, .dynamic = false},
                                {.granularity = quant::Granularity::per_tensor, .dynamic = true});
     },
     kUnsupported,
     "activations: one dynamic scale for a whole tensor would make a row depend on the padding and on what is decoded "
     "beside it (use per_token, or a static scale)"},
};

const std::vector<Row> kSelection = {
    {"an unknown kind", online({.scheme = "int8_w8a8", .module_types = {"conv3d"}}), kInvalid,
     "module_types: 'conv3d' is not a kind of layer (did you mean conv1d? kinds and groups: linear, pointwise_conv, "
     "conv1d, conv2d, conv, all)"},
    {"a kind that the model has not", online({.scheme = "int8_w8a8", .module_types = {"pointwise_conv"}}), kInvalid,
     "module_types: the model has no layer of kind pointwise_conv (it has layers of kind linear, conv1d)"},
    {"convolutions online", online({.scheme = "int8_w8a8", .module_types = {"conv1d"}}), kUnsupported,
     "module_types: a calibrated input scale is needed for conv1d, and loading a model calibrates nothing (write a "
     "checkpoint with `oasr quantize --module-types conv1d`, or leave them out)"},
    {"all kinds online", online({.scheme = "int8_w8a8", .module_types = {"all"}}), kUnsupported,
     "module_types: a calibrated input scale is needed for conv1d, conv2d, and loading a model calibrates nothing "
     "(write a checkpoint with `oasr quantize --module-types linear,pointwise_conv,conv1d,conv2d`, or leave them out)"},
    {"a named convolution online", online({.scheme = "int8_w8a8", .layers = {kConv}}), kUnsupported,
     "layers: a calibrated input scale is needed for conv1d, and loading a model calibrates nothing (write a "
     "checkpoint with `oasr quantize`, or leave them out)"},
    {"a glob that matches nothing", online({.scheme = "int8_w8a8", .ignore = {"encoder.layers.0.*"}}), kInvalid,
     "ignore: no layer matches 'encoder.layers.0.*' (did you mean model.encoder.layers.0.self_attn.qkv_proj? paths are "
     "like model.encoder.conv1, proj_out)"},
    {"everything ignored", online({.scheme = "int8_w8a8", .ignore = {"*"}}), kInvalid,
     "quantization: no layer is left to quantize: of 23, 23 ignored and 0 skipped (ignore fewer layers, or choose other "
     "kinds)"},
    {"a named layer whose weight is another's", online({.scheme = "int8_w8a8", .layers = {"proj_out"}}), kUnsupported,
     "layers: 'proj_out' can not be quantized: its weight is the token embedding's (leave it out)"},
    {"a named layer that is not there", online({.scheme = "int8_w8a8", .layers = {"model.encoder.layers.9.fc1"}}),
     kInvalid,
     "layers: there is no layer 'model.encoder.layers.9.fc1' (did you mean model.encoder.layers.0.fc1? paths are like "
     "model.encoder.conv1, proj_out)"},
    {"a named layer of an odd height", online_unaligned({.scheme = "int8_w8a8", .layers = {kFc1}}), kUnsupported,
     "layers: 'model.encoder.layers.0.fc1' can not be quantized: out_features 100 is not a multiple of 8 (leave it "
     "out)"},
    {"a named layer of an odd width", online_unaligned({.scheme = "int8_w8a8", .layers = {kFc2}}), kUnsupported,
     "layers: 'model.encoder.layers.0.fc2' can not be quantized: in_features 100 is not a multiple of 16 (leave it "
     "out)"},
    {"ignore beside named layers", online({.scheme = "int8_w8a8", .ignore = {"*"}, .layers = {kFc1}}), kInvalid,
     "ignore: the layers are named one by one, so it would choose nothing (leave out either layers or this)"},
    {"module_types beside named layers",
     online({.scheme = "int8_w8a8", .module_types = {"linear"}, .layers = {kFc1}}), kInvalid,
     "module_types: the layers are named one by one, so it would choose nothing (leave out either layers or this)"},
    {"ignore without a scheme", online({.ignore = {"*"}}), kInvalid,
     "ignore: it chooses layers to quantize, and no scheme was asked for (name a scheme, such as int8_w8a8)"},
    {"module_types without a scheme", online({.module_types = {"linear"}}), kInvalid,
     "module_types: it chooses layers to quantize, and no scheme was asked for (name a scheme, such as int8_w8a8)"},
    {"layers without a scheme", online({.layers = {kFc1}}), kInvalid,
     "layers: it chooses layers to quantize, and no scheme was asked for (name a scheme, such as int8_w8a8)"},
    {"an option that is none", option("ingore=*"), kInvalid,
     "quantization_option: 'ingore' is not an option of quantization (did you mean ignore? options: ignore, "
     "module_types)"},
    {"an option without a value", option("ignore"), kInvalid,
     "quantization_option: 'ignore' has no value (write ignore=VALUE, several with commas)"},
    {"a KV cache of 8 bits", option("kv_cache=fp8_e4m3"), kUnsupported,
     "quantization_option: 'kv_cache=fp8_e4m3': no kernel reads keys and values of 8 bits yet (leave it out: caches "
     "are float32, of cross-attention float16 beside quantized weights)"},
};

const std::string kChosen =
    ": the checkpoint is quantized, and its layers are already chosen (leave it out, or quantize the full-precision "
    "checkpoint)";

const std::vector<Row> kAuthority = {
    {"another scheme than its own", asked_of_a_quantized_folder({.scheme = "fp8_w8a8"}), kInvalid,
     "quantization: the checkpoint is quantized as int8_w8a8 and int8_w8a8_static, not as fp8_w8a8 (leave it out, or "
     "quantize the full-precision checkpoint)"},
    {"an unknown scheme of a quantized folder", asked_of_a_quantized_folder({.scheme = "int9"}), kInvalid,
     "quantization: 'int9' is not a scheme (schemes: int8_w8a8, int8_w8a8_static, w4a8_g128, w4a8_chn)"},
    {"ignore", asked_of_a_quantized_folder({.scheme = "int8_w8a8", .ignore = {"*"}}), kInvalid, "ignore" + kChosen},
    {"ignore alone", asked_of_a_quantized_folder({.ignore = {"*"}}), kInvalid, "ignore" + kChosen},
    {"module_types", asked_of_a_quantized_folder({.scheme = "int8_w8a8", .module_types = {"linear"}}), kInvalid,
     "module_types" + kChosen},
    {"layers", asked_of_a_quantized_folder({.layers = {kFc1}}), kInvalid, "layers" + kChosen},
};

const std::vector<Row> kSpecification = {
    {"a stored layer that the model has not", stored_layer("model.encoder.layers.9.fc1", {.scheme = "int8_w8a8"}), kBad,
     "model.encoder.layers.9.fc1: the model has no such layer to quantize (check that configuration and weights are of "
     "the same model)"},
    {"a stored layer that is not quantizable", stored_layer("proj_out", {.scheme = "int8_w8a8"}), kBad,
     "proj_out: it is stored quantized and can not be: its weight is the token embedding's (write the checkpoint again "
     "with `oasr quantize`)"},
    {"a stored layer that does not fit groups",
     stored_layer(kFc1, {.scheme = "w4a8_g128", .zero_domain = formats::ZeroDomain::post_scaled}), kBad,
     "model.encoder.layers.0.fc1: it is stored quantized and can not be: in_features 64 is not a multiple of 128 (write "
     "the checkpoint again with `oasr quantize`)"},
    {"a stored convolution with a scale a token", stored_layer(kConv, {.scheme = "int8_w8a8", .smoothed = true}), kBad,
     "model.encoder.conv1: int8_w8a8 has no static input scale, and conv1d needs one (write the checkpoint again with "
     "`oasr quantize`)"},
    {"a stored layer of fp8", stored_layer(kFc1, {.scheme = "fp8_w8a8"}), kUnsupported,
     "model.encoder.layers.0.fc1: fp8_w8a8 is not served: no kernel here multiplies fp8 (use int8_w8a8)"},
    {"a stored convolution of fp8", stored_layer(kConv, {.scheme = "fp8_w8a8_static", .smoothed = true}), kBad,
     "model.encoder.conv1: fp8_w8a8_static has no kernels for conv1d (write the checkpoint again with `oasr quantize`)"},
    {"a scheme that no layer has",
     stored([](QuantizedFolder& folder) { folder.native.spec.schemes.push_back("fp8_w8a8"); }), kBad,
     "quantization.schemes: no layer is quantized as 'fp8_w8a8'"},
    {"a layer whose scheme is not listed",
     stored([](QuantizedFolder& folder) { folder.native.spec.schemes = {"int8_w8a8_static"}; }), kBad,
     "model.decoder.layers.0.encoder_attn.out_proj: is quantized as 'int8_w8a8', which quantization.schemes does not "
     "explain (write the checkpoint again with `oasr quantize`)"},
    {"another format version", configured("/format_version", 3), kUnsupported,
     "FOLDER/oasr_config.json: is format version 3; this oasr reads 1 and 2 (use a newer oasr, or convert the source "
     "again with this one)"},
    {"version 1 with a quantization", configured("/format_version", 1), kBad,
     "FOLDER/oasr_config.json: is format version 1 (full precision) and has a \"quantization\", which is version 2 "
     "(download or copy the folder again, or convert the source again)"},
    {"a key that is not known", configured("/quantization/more", 1), kBad,
     "quantization.more: the key is not known (known keys: schemes, module_types, ignore, layers, producer)"},
};

const std::string kNoFit = "FOLDER: the tensors do not fit the architecture: ";
const std::string kSameModel = " (check that configuration and weights are of the same model)";

const std::vector<Row> kSlots = {
    {"a weight of another dtype",
     stored([](QuantizedFolder& folder) { folder.add_floats(kFc1 + ".weight", {96, 64}); }), kBad,
     kNoFit + "1 of another dtype: model.encoder.layers.0.fc1.weight is float32 instead of int8" + kSameModel},
    {"a scale of another dtype",
     stored([](QuantizedFolder& folder) {
       const std::vector<std::uint16_t> halves(96, 0x3C00);
       folder.native.tensors.add(kFc1 + ".weight_scale", StorageFormat::f16, {96}, quant::bytes_of(halves));
     }),
     kBad, kNoFit + "1 of another dtype: model.encoder.layers.0.fc1.weight_scale is float16 instead of float32" +
               kSameModel},
    {"no weight", stored([](QuantizedFolder& folder) { folder.erase("model.decoder.layers.1.fc1.weight"); }), kBad,
     kNoFit + "1 missing: model.decoder.layers.1.fc1.weight" + kSameModel},
    {"no weight_scale", stored([](QuantizedFolder& folder) { folder.erase(kFc1 + ".weight_scale"); }), kBad,
     kNoFit + "1 missing: model.encoder.layers.0.fc1.weight_scale" + kSameModel},
    {"no input_scale", stored([](QuantizedFolder& folder) { folder.erase(kFc2 + ".input_scale"); }), kBad,
     kNoFit + "1 missing: model.encoder.layers.0.fc2.input_scale" + kSameModel},
    {"no smooth_inv", stored([](QuantizedFolder& folder) { folder.erase(kConv + ".smooth_inv"); }), kBad,
     kNoFit + "1 missing: model.encoder.conv1.smooth_inv" + kSameModel},
    {"a slot too much", stored([](QuantizedFolder& folder) { folder.add_floats(kFc1 + ".input_scale", {1}); }), kBad,
     kNoFit + "1 extra: model.encoder.layers.0.fc1.input_scale" + kSameModel},
    {"a renamed slot",
     stored([](QuantizedFolder& folder) { folder.rename(kFc1 + ".weight_scale", kFc1 + ".scale"); }), kBad,
     kNoFit + "1 missing: model.encoder.layers.0.fc1.weight_scale; 1 extra: model.encoder.layers.0.fc1.scale" +
         kSameModel},
    {"a misshapen scale", stored([](QuantizedFolder& folder) { folder.add_floats(kFc1 + ".weight_scale", {95}); }),
     kBad, kNoFit + "1 misshapen: model.encoder.layers.0.fc1.weight_scale is [95] instead of [96]" + kSameModel},
    {"channels before taps",
     stored([](QuantizedFolder& folder) {
       const auto weight = folder.native.tensors.slots.at(kConv + ".weight");
       const std::vector<std::byte> bytes(weight.bytes.begin(), weight.bytes.end());
       folder.native.tensors.add(kConv + ".weight", StorageFormat::i8, {64, 80, 3}, bytes);
     }),
     kBad, kNoFit + "1 misshapen: model.encoder.conv1.weight is [64, 80, 3] instead of [64, 3, 80]" + kSameModel},
    {"codes of a layer that the specification forgot",
     stored([](QuantizedFolder& folder) {
       folder.native.spec.layers.erase(kFc1);
       folder.erase(kFc1 + ".weight_scale");
     }),
     kBad,
     kNoFit + "1 of another dtype: model.encoder.layers.0.fc1.weight is int8 instead of full precision" + kSameModel},
    {"a scale that is no number",
     stored([](QuantizedFolder& folder) { folder.native.tensors.set(kFc1 + ".weight_scale", 0, std::nanf("")); }),
     kBad, "model.encoder.layers.0.fc1: weight_scale holds a value that is not a scale (finite, not negative)"},
    {"an input scale of zero",
     stored([](QuantizedFolder& folder) { folder.native.tensors.set(kConv + ".input_scale", 0, 0.0f); }), kBad, "model.encoder.conv1: input_scale holds a value that is not a scale (finite, above zero)"},
    {"an infinite input scale",
     stored([](QuantizedFolder& folder) { folder.native.tensors.set(kFc2 + ".input_scale", 0, INFINITY); }), kBad,
     "model.encoder.layers.0.fc2: input_scale holds a value that is not a scale (finite, above zero)"},
    {"a negative smoother",
     stored([](QuantizedFolder& folder) { folder.native.tensors.set(kConv + ".smooth_inv", 0, -1.0f); }), kBad, "model.encoder.conv1: smooth_inv holds a value that is not a scale (finite, above zero)"},
};

const std::vector<Row> kVariables = {
    {"mma_sync on a CPU", under("OASR_SCALED_MM_BACKEND", "mma_sync"), kUnsupported,
     "OASR_SCALED_MM_BACKEND: 'mma_sync' runs on a GPU, and this is a CPU (use one of: auto, native, reference)"},
    {"cublaslt on a CPU", under("OASR_SCALED_MM_BACKEND", "cublaslt"), kUnsupported,
     "OASR_SCALED_MM_BACKEND: 'cublaslt' runs on a GPU, and this is a CPU (use one of: auto, native, reference)"},
    {"lanes for int8 products alone",
     [](QuantizedFolder& folder) {
       const oasr::testing::Variable layers("OASR_LAYERS_BACKEND", "reference"), mm("OASR_SCALED_MM_BACKEND", "native");
       folder.context.isa = selected_isa().value();
       return status_of(folder.try_load());
     },
     kInvalid,
     "OASR_SCALED_MM_BACKEND: OASR_LAYERS_BACKEND=reference runs the reference of every op (unset one of the two)"},
    {"a backend of layers that is none",
     [](QuantizedFolder&) {
       const oasr::testing::Variable layers("OASR_LAYERS_BACKEND", "fast");
       return status_of(selected_isa());
     },
     kInvalid, "OASR_LAYERS_BACKEND: 'fast' is not a backend of layers (use one of: auto, native, reference)"},
    {"a lane for the definitions",
     [](QuantizedFolder&) {
       const oasr::testing::Variable layers("OASR_LAYERS_BACKEND", "torch"), isa("OASR_ISA", "avx2");
       return status_of(selected_isa());
     },
     kInvalid, "OASR_ISA: 'avx2' names a lane, and OASR_LAYERS_BACKEND=reference runs none (unset one of the two)"},
    {"a backend that is none", under("OASR_SCALED_MM_BACKEND", "fast"), kInvalid,
     "OASR_SCALED_MM_BACKEND: 'fast' is not a backend of int8 products (use one of: auto, native, reference)"},
    {"a fusion that is neither", under("OASR_QUANT_FUSION", "2"), kInvalid,
     "OASR_QUANT_FUSION: '2' is neither 0 nor 1 (0 makes every layer quantize its own input)"},
    {"an instruction set that is none",
     [](QuantizedFolder&) {
       const oasr::testing::Variable set("OASR_ISA", "sse9");
       return status_of(selected_isa());
     },
     kInvalid,
     "OASR_ISA: 'sse9' is not an instruction set (use one of: scalar, avx2, avx_vnni, avx512, avx512_vnni, amx)"},
};

TEST_F(QuantizedFolder, IsRefusedWithTheTextOfTheTable) {
  std::size_t rows = 0;
  for (const auto* table : {&kSchemes, &kSelection, &kAuthority, &kSpecification, &kSlots, &kVariables}) {
    for (const Row& row : *table) {
      SCOPED_TRACE(row.name);
      ++rows;
      native = models::whisper::calibrated_tensors(random);
      const Status status = row.attempt(*this);
      if (status) {
        ADD_FAILURE() << "was not refused";
        continue;
      }
      std::string message = status.error().message();
      const std::string folder = (temporary.path() / std::to_string(written - 1)).string();
      if (const auto at = message.find(folder); written > 0 && at != message.npos) {
        message.replace(at, folder.size(), "FOLDER");
      }
      EXPECT_EQ(message, row.message);
      EXPECT_EQ(error_code_name(status.error().code), error_code_name(row.code));
    }
  }
  EXPECT_EQ(rows, 66u);
}

TEST_F(QuantizedFolder, LoadsAsItIsAndByItsOwnSchemes) {
  for (const char* scheme : {"", "int8_w8a8", "int8_w8a8_static"}) {
    const auto loaded = try_load({.scheme = scheme});
    EXPECT_TRUE(loaded) << scheme << ": " << loaded.error().message();
  }
}

TEST_F(QuantizedFolder, WithoutAnyLayerIsFullPrecisionAndMayBeQuantized) {
  native = {};
  const auto network = random.network();
  for (const TensorSource& source : network->layers.state()) native.keep(source);
  const auto plain = try_load();
  ASSERT_TRUE(plain) << plain.error().message();
  EXPECT_TRUE(plain->quantization.empty());
  const auto quantized = try_load({.scheme = "int8_w8a8"});
  ASSERT_TRUE(quantized) << quantized.error().message();
  EXPECT_GT(quantized->report.quantized, 0);
}

}  // namespace
}  // namespace oasr::load
