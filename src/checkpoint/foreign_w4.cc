#include "checkpoint/foreign_w4.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/json.h"

namespace oasr {
namespace {

constexpr std::array kForeignNames = {
    EnumName<ForeignW4>{ForeignW4::none, "none"},
    EnumName<ForeignW4>{ForeignW4::qserve, "qserve"},
    EnumName<ForeignW4>{ForeignW4::fake_quant, "fake_quant"},
    EnumName<ForeignW4>{ForeignW4::compressed_tensors, "compressed_tensors"},
};

// The first suffix tells the toolkit. All but "weight" tell that a layer is one of its own.
constexpr std::array<std::string_view, 5> kQServe = {"s1_scales", "qweight", "s2_scales", "s2_zeros",
                                                     "s1_szeros"};
constexpr std::array<std::string_view, 5> kFakeQuant = {"weight.scale.0", "weight", "weight.scale.1",
                                                        "weight.zero", "weight.scaled_zero"};
constexpr std::array<std::string_view, 6> kCompressed = {"weight_scale", "weight_packed",     "weight",
                                                         "weight_shape", "weight_zero_point", "weight_g_idx"};

std::span<const std::string_view> suffixes_of(ForeignW4 toolkit) {
  switch (toolkit) {
    case ForeignW4::none:
      return {};
    case ForeignW4::qserve:
      return kQServe;
    case ForeignW4::fake_quant:
      return kFakeQuant;
    case ForeignW4::compressed_tensors:
      return kCompressed;
  }
  CHECK(false, "a toolkit without names");
}

// The path of a tensor that ends with a suffix; empty: it does not.
std::string_view path_of(std::string_view name, std::string_view suffix) {
  if (name.size() < suffix.size() + 2 || !name.ends_with(suffix)) return {};
  name.remove_suffix(suffix.size());
  return name.back() == '.' ? name.substr(0, name.size() - 1) : std::string_view();
}

bool any_ends_with(const StateDict& state, std::string_view suffix) {
  return std::ranges::any_of(state.tensors,
                             [&](const auto& entry) { return !path_of(entry.first, suffix).empty(); });
}

Unexpected refuse(std::string what, std::string where) {
  return unexpected(ErrorCode::unsupported, std::move(what), std::move(where),
                    "quantize the original model here");
}

// A member of an object; null for none and for what is no object.
Json member(const Json& object, std::string_view key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() ? Json() : *found;
}

Status refuse_modelopt(const Json& algorithm, const std::string& where) {
  if (algorithm == Json("W4A8_AWQ")) {
    return refuse(
        "ModelOpt's W4A8_AWQ is another numerical contract: activations are float8 (e4m3) with one static "
        "scale, and so are the products of weights and group scales; int8 products can not give its numbers",
        where);
  }
  return refuse("ModelOpt's " + algorithm.dump() + " is not read", where);
}

// One group of the configuration of compressed-tensors.
Status check_compressed_group(const Json& group, const std::string& where) {
  const Json weights = member(group, "weights"), inputs = member(group, "input_activations");
  if (inputs.is_null()) {
    return refuse("activations are not quantized (W4A16): another numerical contract", where);
  }
  if (member(inputs, "type") != Json("int")) {
    return refuse("activations are of type " + member(inputs, "type").dump() +
                      ", not int: another numerical contract, which int8 products can not give",
                  where);
  }
  const auto is = [&](const Json& of, const char* key, const Json& value) {
    return member(of, key) == value;
  };
  if (!is(inputs, "num_bits", 8) || !is(inputs, "strategy", "token") || !is(inputs, "dynamic", true) ||
      !is(inputs, "symmetric", true)) {
    return refuse("activations are not int8, symmetric, with a dynamic scale a token", where);
  }
  if (!is(weights, "num_bits", 4) || !is(weights, "type", "int")) {
    return refuse(fmt::format("weights of {} bits, type {}, are not read: 4-bit int is",
                              member(weights, "num_bits").dump(), member(weights, "type").dump()),
                  where);
  }
  const bool grouped = is(weights, "strategy", "group") && is(weights, "group_size", 128);
  if (!grouped && !is(weights, "strategy", "channel")) {
    return refuse(
        fmt::format("weights in groups of {} by strategy {} are not read: groups of 128 are, and channels",
                    member(weights, "group_size").dump(), member(weights, "strategy").dump()),
        where);
  }
  const Json order = member(weights, "actorder");
  if (order.is_null() || order == Json("static") || order == Json("weight")) return {};
  return refuse("weights whose groups follow activations (actorder " + order.dump() + ") are not read",
                where);
}

Status check_compressed(const Json& config, const std::string& where) {
  const Json groups = member(config, "config_groups");
  if (!groups.is_object() || groups.empty()) {
    return unexpected(ErrorCode::bad_checkpoint, "quantization_config has no config_groups", where);
  }
  for (const auto& [name, group] : groups.items()) {
    TRY(check_compressed_group(group, where + ": quantization_config." + name));
    for (const Json& format : {member(config, "format"), member(group, "format")}) {
      if (format.is_null() || format == Json("pack-quantized") || format == Json("int-quantized")) continue;
      if (format == Json("mixed-precision")) continue;  // then every group says its own
      return refuse("the format " + format.dump() + " is not read: pack-quantized and int-quantized are",
                    where);
    }
  }
  return {};
}

}  // namespace

std::span<const EnumName<ForeignW4>> foreign_w4_names() { return kForeignNames; }

Result<ForeignW4> foreign_w4(const Checkpoint& checkpoint) {
  if (checkpoint.container != "huggingface") return ForeignW4::none;
  const auto document = [&](const char* name) -> Result<Json> {
    const auto found = checkpoint.documents.find(name);
    return found == checkpoint.documents.end() ? Result<Json>(Json()) : parse_json(found->second, name);
  };
  const Json modelopt = member(TRY(document("hf_quant_config.json")), "quantization");
  if (!modelopt.is_null()) TRY(refuse_modelopt(member(modelopt, "quant_algo"), "hf_quant_config.json"));
  const Json config = member(TRY(document("config.json")), "quantization_config");
  const Json method = member(config, "quant_method");
  if (method == Json("modelopt")) TRY(refuse_modelopt(member(config, "quant_algo"), "config.json"));
  const bool known = method == Json("qoq") || method == Json("compressed-tensors");
  if (!config.is_null() && !known) {
    return refuse("quantization by " + (method.is_null() ? config : method).dump() + " is not read",
                  "config.json");
  }
  if (any_ends_with(checkpoint.tensors, kQServe[0])) return ForeignW4::qserve;
  if (method == Json("qoq")) {
    return unexpected(ErrorCode::bad_checkpoint,
                      "quantization by \"qoq\" is claimed, and no tensor is quantized so", "config.json",
                      "take quantization_config out if the weights are at full precision");
  }
  if (any_ends_with(checkpoint.tensors, kFakeQuant[0])) return ForeignW4::fake_quant;
  if (method != Json("compressed-tensors")) return ForeignW4::none;
  TRY(check_compressed(config, "config.json"));
  return ForeignW4::compressed_tensors;
}

std::map<std::string, ForeignTensors, std::less<>> take_foreign_layers(StateDict& state, ForeignW4 toolkit) {
  std::map<std::string, ForeignTensors, std::less<>> layers;
  const auto suffixes = suffixes_of(toolkit);
  if (suffixes.empty()) return layers;
  for (const auto& [name, tensor] : state.tensors) {
    for (const std::string_view suffix : suffixes) {
      const auto path = path_of(name, suffix);
      if (suffix != "weight" && !path.empty()) layers.try_emplace(std::string(path));
    }
  }
  for (auto& [path, tensors] : layers) {
    for (const std::string_view suffix : suffixes) {
      const auto found = state.tensors.find(path + "." + std::string(suffix));
      if (found == state.tensors.end()) continue;
      tensors.emplace(suffix, found->second);
      state.tensors.erase(found);
    }
  }
  return layers;
}

}  // namespace oasr
