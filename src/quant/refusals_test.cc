// Every refusal of the module with its full text. A row is what was asked and what is answered.
#include <gtest/gtest.h>

#include "quant/testing.h"

namespace oasr::quant {
namespace {

struct Refusal {
  const char* asked;  // for the reader, and for a failure
  Status status;
  ErrorCode code;
  const char* message;  // "where: what (remedy)"
};

void expect(const std::vector<Refusal>& rows) {
  for (const auto& row : rows) {
    SCOPED_TRACE(row.asked);
    ASSERT_FALSE(row.status);
    EXPECT_EQ(row.status.error().message(), row.message);
    EXPECT_EQ(error_code_name(row.status.error().code), error_code_name(row.code));
  }
}

template <class T>
Status status_of(const Result<T>& result) {
  if (result) return {};
  return unexpected(result.error());
}

Status online(const QuantRequest& request) {
  return status_of(select(request, small_model(), Origin::online));
}

Status calibrated(const QuantRequest& request) {
  return status_of(select(request, small_model(), Origin::calibrated));
}

Status option(std::string_view text) {
  QuantRequest request;
  return add_option(request, text);
}

constexpr auto kInvalid = ErrorCode::invalid_argument;
constexpr auto kUnsupported = ErrorCode::unsupported;
constexpr auto kBad = ErrorCode::bad_checkpoint;

TEST(Refusals, OfSchemes) {
  expect({
      {"an unknown name", status_of(find_scheme("int8_w8a9")), kInvalid,
       "quantization: 'int8_w8a9' is not a scheme (did you mean int8_w8a8? schemes: int8_w8a8, "
       "int8_w8a8_static, w4a8_g128, w4a8_chn)"},
      {"a name that is near to none", status_of(find_scheme("q5_0")), kInvalid,
       "quantization: 'q5_0' is not a scheme (schemes: int8_w8a8, int8_w8a8_static, w4a8_g128, "
       "w4a8_chn)"},
      {"fp8_w8a8", status_of(find_scheme("fp8_w8a8")), kUnsupported,
       "quantization: fp8_w8a8 is not served: no kernel here multiplies fp8 (use int8_w8a8)"},
      {"fp8_w8a8_static", status_of(find_scheme("fp8_w8a8_static")), kUnsupported,
       "quantization: fp8_w8a8_static is not served: no kernel here multiplies fp8 (use "
       "int8_w8a8_static)"},
      {"nvfp4", status_of(find_scheme("nvfp4")), kUnsupported,
       "quantization: nvfp4 is not served: no kernel here multiplies nvfp4 (use int8_w8a8)"},
      {"the static variant of w4a8", status_of(static_variant(*known_scheme("w4a8_g128").value())), kUnsupported,
       "quantization: w4a8_g128 has no variant with a static input scale (use int8_w8a8_static)"},
      {"the static variant of nvfp4", status_of(static_variant(*known_scheme("nvfp4").value())),
       kUnsupported,
       "quantization: nvfp4 has no variant with a static input scale (use int8_w8a8_static)"},
  });
}

TEST(Refusals, OfArguments) {
  const auto args = [](Granularity granularity, bool dynamic) {
    return QuantArgs{.granularity = granularity, .dynamic = dynamic};
  };
  const auto weights = args(Granularity::per_channel, false);
  const auto activations = args(Granularity::per_token, true);
  expect({
      {"a dynamic scale a tensor", check_args(weights, args(Granularity::per_tensor, true)),
       kUnsupported,
       "activations: one dynamic scale for a whole tensor would make a row depend on the padding "
       "and on what is decoded beside it (use per_token, or a static scale)"},
      {"a static scale a token", check_args(weights, args(Granularity::per_token, false)),
       kUnsupported,
       "activations: a scale a token can not be static: the tokens are not known before (use a "
       "dynamic scale, or per_tensor)"},
      {"a scale an input channel", check_args(weights, args(Granularity::per_channel, true)),
       kUnsupported,
       "activations: a scale an input channel does not factor out of the product's sum (use "
       "per_token, and smooth the channels)"},
      {"dynamic weights", check_args(args(Granularity::per_channel, true), activations),
       kUnsupported,
       "weights: a weight's scale can not be dynamic: it is stored with the weight (use a static "
       "scale)"},
      {"weights by token", check_args(args(Granularity::per_token, false), activations),
       kUnsupported, "weights: a weight has no tokens to have scales of (use per_channel)"},
  });
}

TEST(Refusals, OfOptions) {
  expect({
      {"no value", option("ignore"), kInvalid,
       "quantization_option: 'ignore' has no value (write ignore=VALUE, several with commas)"},
      {"an empty value", option("module_types="), kInvalid,
       "quantization_option: 'module_types=' has an empty value (write module_types=VALUE, several "
       "with commas)"},
      {"an empty value among others", option("ignore=a,,b"), kInvalid,
       "quantization_option: 'ignore=a,,b' has an empty value (write ignore=VALUE, several with "
       "commas)"},
      {"a comma at the end", option("ignore=a,"), kInvalid,
       "quantization_option: 'ignore=a,' has an empty value (write ignore=VALUE, several with "
       "commas)"},
      {"a misspelt key", option("module_type=linear"), kInvalid,
       "quantization_option: 'module_type' is not an option of quantization (did you mean "
       "module_types? options: ignore, module_types)"},
      {"another key", option("bits=4"), kInvalid,
       "quantization_option: 'bits' is not an option of quantization (options: ignore, "
       "module_types)"},
      {"small caches", option("kv_cache=fp8_e4m3"), ErrorCode::unsupported,
       "quantization_option: 'kv_cache=fp8_e4m3': no kernel reads keys and values of 8 bits yet (leave it out: "
       "caches are float32, of cross-attention float16 beside quantized weights)"},
      {"ignore without a scheme", online({.ignore = {"encoder.*"}}), kInvalid,
       "ignore: it chooses layers to quantize, and no scheme was asked for (name a scheme, such as "
       "int8_w8a8)"},
      {"module_types without a scheme", online({.module_types = {"all"}}), kInvalid,
       "module_types: it chooses layers to quantize, and no scheme was asked for (name a scheme, "
       "such as int8_w8a8)"},
      {"layers without a scheme", online({.layers = {"encoder.conv1"}}), kInvalid,
       "layers: it chooses layers to quantize, and no scheme was asked for (name a scheme, such as "
       "int8_w8a8)"},
      {"ignore beside named layers",
       online({.scheme = "int8_w8a8", .ignore = {"a"}, .layers = {"encoder.conv1"}}), kInvalid,
       "ignore: the layers are named one by one, so it would choose nothing (leave out either "
       "layers or this)"},
      {"module_types beside named layers",
       online({.scheme = "int8_w8a8", .module_types = {"all"}, .layers = {"encoder.conv1"}}),
       kInvalid,
       "module_types: the layers are named one by one, so it would choose nothing (leave out "
       "either layers or this)"},
  });
}

TEST(Refusals, OfWhatIsSelected) {
  expect({
      {"an unknown scheme", online({.scheme = "int8"}), kInvalid,
       "quantization: 'int8' is not a scheme (did you mean int8_w8a8? schemes: int8_w8a8, "
       "int8_w8a8_static, w4a8_g128, w4a8_chn)"},
      {"a scheme that is not served", online({.scheme = "fp8_w8a8"}), kUnsupported,
       "quantization: fp8_w8a8 is not served: no kernel here multiplies fp8 (use int8_w8a8)"},
      {"an unknown kind", online({.scheme = "int8_w8a8", .module_types = {"conv3d"}}), kInvalid,
       "module_types: 'conv3d' is not a kind of layer (did you mean conv1d? kinds and groups: "
       "linear, pointwise_conv, conv1d, conv2d, conv, all)"},
      {"an ignore glob without a match",
       online({.scheme = "int8_w8a8", .ignore = {"encoder.*", "model.encoder.layers.0.*"}}),
       kInvalid,
       "ignore: no layer matches 'model.encoder.layers.0.*' (did you mean encoder.layers.0.fc1? "
       "paths are like encoder.convs.0, decoder.head)"},
      {"a glob that is near to none", online({.scheme = "int8_w8a8", .ignore = {"joiner.*"}}),
       kInvalid,
       "ignore: no layer matches 'joiner.*' (paths are like encoder.convs.0, decoder.head)"},
      {"a path that is not there", online({.scheme = "int8_w8a8", .layers = {"layers.0.fc1"}}),
       kInvalid,
       "layers: there is no layer 'layers.0.fc1' (did you mean encoder.layers.0.fc1? paths are "
       "like encoder.convs.0, decoder.head)"},
      {"a named layer of an odd width", online({.scheme = "int8_w8a8", .layers = {"encoder.odd"}}),
       kUnsupported,
       "layers: 'encoder.odd' can not be quantized: in_features 81 is not a multiple of 16, "
       "out_features 5002 is not a multiple of 8 (leave it out)"},
      {"a named layer that does not fit groups",
       online({.scheme = "w4a8_g128", .layers = {"encoder.odd"}}), kUnsupported,
       "layers: 'encoder.odd' can not be quantized: in_features 81 is not a multiple of 128, out_features 5002 is "
       "not a multiple of 32 (leave it out)"},
      {"a named depthwise convolution",
       calibrated({.scheme = "int8_w8a8", .layers = {"encoder.layers.0.depthwise"}}), kUnsupported,
       "layers: 'encoder.layers.0.depthwise' can not be quantized: it has 384 groups, and only "
       "dense convolutions have a kernel (leave it out)"},
      {"a named layer that shares its weight",
       online({.scheme = "int8_w8a8", .layers = {"decoder.head"}}), kUnsupported,
       "layers: 'decoder.head' can not be quantized: its weight is the token embedding's (leave it "
       "out)"},
  });
}

TEST(Refusals, OfScalesThatLoadingCanNotGive) {
  expect({
      {"a static scheme online", online({.scheme = "int8_w8a8_static"}), kUnsupported,
       "quantization: int8_w8a8_static needs calibrated input scales, and loading a model "
       "calibrates nothing (write a checkpoint with `oasr quantize`, or use int8_w8a8)"},
      {"a convolution online", online({.scheme = "int8_w8a8", .module_types = {"conv2d"}}),
       kUnsupported,
       "module_types: a calibrated input scale is needed for conv2d, and loading a model "
       "calibrates nothing "
       "(write a checkpoint with `oasr quantize --module-types conv2d`, or leave them out)"},
      {"all kinds online", online({.scheme = "int8_w8a8", .module_types = {"all"}}), kUnsupported,
       "module_types: a calibrated input scale is needed for conv1d, conv2d, and loading a model "
       "calibrates "
       "nothing (write a checkpoint with `oasr quantize --module-types "
       "linear,pointwise_conv,conv1d,conv2d`, or leave them out)"},
      {"a named convolution online", online({.scheme = "int8_w8a8", .layers = {"encoder.conv1"}}),
       kUnsupported,
       "layers: a calibrated input scale is needed for conv1d, and loading a model calibrates "
       "nothing (write "
       "a checkpoint with `oasr quantize`, or leave them out)"},
      {"a convolution beside 4-bit layers online", online({.scheme = "w4a8_chn", .module_types = {"conv1d"}}),
       kUnsupported,
       "module_types: a calibrated input scale is needed for conv1d, and loading a model calibrates nothing "
       "(write a checkpoint with `oasr quantize --module-types conv1d`, or leave them out)"},
      {"fp8 convolutions", calibrated({.scheme = "fp8_w8a8", .module_types = {"conv"}}),
       kUnsupported,
       "module_types: fp8_w8a8 has no kernels for conv1d, conv2d (use int8_w8a8, or leave them "
       "out)"},
      {"a named fp8 convolution", calibrated({.scheme = "fp8_w8a8", .layers = {"encoder.conv1"}}),
       kUnsupported,
       "layers: fp8_w8a8 has no kernels for conv1d (use int8_w8a8, or leave them out)"},
  });
}

TEST(Refusals, OfAChoiceThatLeavesNothing) {
  const auto one = [](const QuantRequest& request, const LayerFacts& layer) {
    return status_of(select(request, std::span(&layer, 1), Origin::online));
  };
  const LayerFacts plain = {.path = "a.fc", .in_features = 16, .out_features = 8};
  const LayerFacts odd = {.path = "a.fc", .in_features = 80 / 16, .out_features = 8};
  expect({
      {"a model without layers", status_of(select({.scheme = "int8_w8a8"}, {}, Origin::online)),
       kInvalid,
       "quantization: the model has no layer that can be quantized (leave the scheme out)"},
      {"a kind that the model has not",
       one({.scheme = "int8_w8a8", .module_types = {"pointwise_conv"}}, plain), kInvalid,
       "module_types: the model has no layer of kind pointwise_conv (it has layers of kind "
       "linear)"},
      {"everything ignored", one({.scheme = "int8_w8a8", .ignore = {"*"}}, plain), kInvalid,
       "quantization: no layer is left to quantize: of 1, 1 ignored and 0 skipped (ignore fewer "
       "layers, or choose other kinds)"},
      {"everything skipped", one({.scheme = "int8_w8a8"}, odd), kInvalid,
       "quantization: no layer is left to quantize: of 1, 0 ignored and 1 skipped; the first "
       "skipped is a.fc: in_features 5 is not a multiple of 16 (ignore fewer layers, or choose "
       "other kinds)"},
      {"some skipped, the rest ignored",
       online({.scheme = "int8_w8a8", .ignore = {"*.fc?", "*.pointwise"}}), kInvalid,
       "quantization: no layer is left to quantize: of 6, 4 ignored and 2 skipped; the first "
       "skipped is encoder.odd: in_features 81 is not a multiple of 16, out_features 5002 is not a "
       "multiple of 8 (ignore fewer layers, or choose other kinds)"},
  });
}

TEST(Refusals, OfAQuantizedCheckpointsAuthority) {
  QuantizationSpec stored;
  stored.schemes = {"int8_w8a8"};
  stored.layers["a"] = {.scheme = "int8_w8a8"};
  QuantizationSpec fused = stored;
  fused.layers["b"] = {.scheme = "int8_w8a8_static"};
  const std::string chosen =
      ": the checkpoint is quantized, and its layers are already chosen (leave it out, or quantize "
      "the full-precision checkpoint)";
  const std::string ignore = "ignore" + chosen, kinds = "module_types" + chosen,
                    layers = "layers" + chosen;
  expect({
      {"another scheme", check_authority(stored, {.scheme = "int8_w8a8_static"}), kInvalid,
       "quantization: the checkpoint is quantized as int8_w8a8, not as int8_w8a8_static (leave it "
       "out, or quantize the full-precision checkpoint)"},
      {"another scheme than both of a fused recipe", check_authority(fused, {.scheme = "fp8_w8a8"}),
       kInvalid,
       "quantization: the checkpoint is quantized as int8_w8a8 and int8_w8a8_static, not as "
       "fp8_w8a8 (leave it out, or quantize the full-precision checkpoint)"},
      {"an unknown scheme", check_authority(stored, {.scheme = "int8"}), kInvalid,
       "quantization: 'int8' is not a scheme (did you mean int8_w8a8? schemes: int8_w8a8, "
       "int8_w8a8_static, w4a8_g128, w4a8_chn)"},
      {"ignore", check_authority(stored, {.scheme = "int8_w8a8", .ignore = {"a"}}), kInvalid,
       ignore.c_str()},
      {"ignore without a scheme", check_authority(stored, {.ignore = {"a"}}), kInvalid,
       ignore.c_str()},
      {"module_types", check_authority(stored, {.module_types = {"linear"}}), kInvalid,
       kinds.c_str()},
      {"layers", check_authority(stored, {.layers = {"a"}}), kInvalid, layers.c_str()},
  });
}

TEST(Refusals, OfStoredLayersThatDoNotFitTheModel) {
  const auto stored = [](const char* path, const char* scheme) {
    QuantizationSpec spec;
    spec.layers[path] = {.scheme = scheme};
    return check_layers(spec, small_model());
  };
  expect({
      {"a path that is not there", stored("encoder.fc9", "int8_w8a8"), kBad,
       "encoder.fc9: the model has no such layer to quantize (check that configuration and weights "
       "are of the same model)"},
      {"an odd width", stored("encoder.convs.0", "int8_w8a8_static"), kBad,
       "encoder.convs.0: it is stored quantized and can not be: in_channels 1 is not a multiple of "
       "16 (write the checkpoint again with `oasr quantize`)"},
      {"a scheme that is not known", stored("encoder.layers.0.fc1", "int3"), kBad,
       "encoder.layers.0.fc1: 'int3' is not a scheme (write the checkpoint again with `oasr "
       "quantize`)"},
      {"a convolution with a dynamic scale", stored("encoder.conv1", "int8_w8a8"), kBad,
       "encoder.conv1: int8_w8a8 has no static input scale, and conv1d needs one (write the "
       "checkpoint again with `oasr quantize`)"},
      {"a shape that groups do not fit", stored("encoder.odd", "w4a8_g128"), kBad,
       "encoder.odd: it is stored quantized and can not be: in_features 81 is not a multiple of 128, out_features "
       "5002 is not a multiple of 32 (write the checkpoint again with `oasr quantize`)"},
      {"a 4-bit convolution", stored("encoder.convs.1", "w4a8_g128"), kBad,
       "encoder.convs.1: w4a8_g128 has no kernels for conv2d (write the checkpoint again with `oasr quantize`)"},
      {"an fp8 convolution", stored("encoder.conv1", "fp8_w8a8_static"), kBad,
       "encoder.conv1: fp8_w8a8_static has no kernels for conv1d (write the checkpoint again with "
       "`oasr quantize`)"},
      {"a scheme that is not served", stored("encoder.layers.0.fc1", "fp8_w8a8"), kUnsupported,
       "encoder.layers.0.fc1: fp8_w8a8 is not served: no kernel here multiplies fp8 (use "
       "int8_w8a8)"},
  });
}

TEST(Refusals, OfSchemesThatLayersDoNotHave) {
  const auto stored = [](std::vector<std::string> schemes, const char* scheme) {
    QuantizationSpec spec;
    spec.schemes = std::move(schemes);
    spec.layers["encoder.layers.0.fc1"] = {.scheme = scheme};
    return check_layers(spec, small_model());
  };
  EXPECT_TRUE(stored({"int8_w8a8"}, "int8_w8a8"));
  EXPECT_TRUE(stored({"w4a8_g128"}, "int8_w8a8"));  // its fallback
  EXPECT_TRUE(stored({"int8_w8a8", "int8_w8a8_static"}, "int8_w8a8_static"));
  expect({
      {"a scheme of no layer", stored({"int8_w8a8_static"}, "int8_w8a8"), kBad,
       "quantization.schemes: no layer is quantized as 'int8_w8a8_static'"},
      {"a layer that no scheme explains", stored({}, "int8_w8a8"), kBad,
       "encoder.layers.0.fc1: is quantized as 'int8_w8a8', which quantization.schemes does not explain (write the "
       "checkpoint again with `oasr quantize`)"},
  });
}

// The JSON of a spec with one layer, `what` replaced by `with`.
Status json(std::string_view what, std::string_view with) {
  std::string text =
      R"({"schemes": ["int8_w8a8"], "module_types": ["linear"], "ignore": [],)"
      R"( "layers": [{"path": "a", "scheme": "int8_w8a8", "smoothed": false}],)"
      R"( "producer": {"tool": "oasr", "version": "1", "recipe": "r", "options": {"alpha": "1"},)"
      R"( "skipped": [{"path": "b", "reason": "odd"}]}})";
  text.replace(text.find(what), what.size(), with);
  return status_of(spec_from_json(parse_json(text, "spec").value()));
}

TEST(Refusals, OfJson) {
  ASSERT_TRUE(json("\"odd\"", "\"even\""));
  expect({
      {"not an object", status_of(spec_from_json(Json(1))), kBad,
       "quantization: expected an object, found a number"},
      {"an unknown key", json("\"ignore\": []", "\"ignore\": [], \"more\": 1"), kBad,
       "quantization.more: the key is not known (known keys: schemes, module_types, ignore, "
       "layers, producer)"},
      {"an unknown key of a layer", json("\"smoothed\"", "\"smooth\""), kBad,
       "quantization.layers[0].smooth: the key is not known (known keys: path, scheme, smoothed)"},
      {"a missing key", json("\"ignore\": [],", ""), kBad,
       "quantization.ignore: the key is missing"},
      {"a wrong type", json("\"ignore\": []", "\"ignore\": [true]"), kBad,
       "quantization.ignore[0]: expected a string, found a boolean"},
      {"a number for a flag", json("false", "0"), kBad,
       "quantization.layers[0].smoothed: expected a boolean, found a number"},
      {"a number for an option", json("{\"alpha\": \"1\"}", "{\"alpha\": 1}"), kBad,
       "quantization.producer.options.alpha: expected a string, found a number"},
      {"an unknown scheme", json("\"scheme\": \"int8_w8a8\"", "\"scheme\": \"int3\""), kBad,
       "quantization.layers[0].scheme: 'int3' is not a scheme (a newer version of oasr may know "
       "it)"},
      {"a zero domain that is not known", json("\"int8_w8a8\", \"smoothed\": false",
                                              R"("w4a8_chn", "smoothed": false, "zero_domain": "scaled")"), kBad,
       "quantization.layers[0].zero_domain: 'scaled' is not a domain of zeros (a newer version of oasr may know "
       "it)"},
      {"a zero domain that is missing", json("\"scheme\": \"int8_w8a8\"", "\"scheme\": \"w4a8_chn\""), kBad,
       "quantization.layers[0].zero_domain: the key is missing"},
      {"a zero domain of weights without zeros",
       json("\"smoothed\": false", R"("smoothed": false, "zero_domain": "pre_scaled")"), kBad,
       "quantization.layers[0].zero_domain: weights of int8_w8a8 have no zeros"},
      {"an unknown scheme in the list", json("[\"int8_w8a8\"]", "[\"int3\"]"), kBad,
       "quantization.schemes[0]: 'int3' is not a scheme (a newer version of oasr may know it)"},
      {"a group as a kind", json("\"linear\"", "\"all\""), kBad,
       "quantization.module_types[0]: 'all' is not a kind of layer (a newer version of oasr may "
       "know it)"},
      {"an empty path", json("\"a\"", "\"\""), kBad,
       "quantization.layers[0].path: the path is empty"},
      {"an empty path that is skipped", json("\"b\"", "\"\""), kBad,
       "quantization.producer.skipped[0].path: the path is empty"},
      {"a path that comes twice",
       json("[{\"path\": \"a\"",
            R"([{"path": "a", "scheme": "nvfp4", "smoothed": true}, {"path": "a")"),
       kBad, "quantization.layers[1].path: the path 'a' comes twice"},
  });
}

}  // namespace
}  // namespace oasr::quant
