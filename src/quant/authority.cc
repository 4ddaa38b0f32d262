// What a quantized checkpoint's own specification says to a request and to a model.
#include <fmt/format.h>

#include <algorithm>

#include "quant/layer_rules.h"
#include "quant/selection.h"

namespace oasr::quant {
namespace {

constexpr const char* kRemedy = "leave it out, or quantize the full-precision checkpoint";

// The schemes that a spec answers to: those it was asked for, then those of its layers.
std::vector<std::string> own_schemes(const QuantizationSpec& spec) {
  std::vector<std::string> own = spec.schemes;
  for (const auto& [path, layer] : spec.layers) {
    if (std::find(own.begin(), own.end(), layer.scheme) == own.end()) own.push_back(layer.scheme);
  }
  return own;
}

Status check_layer(const std::string& path, const QuantizedLayer& stored,
                   std::span<const LayerFacts> layers) {
  const auto bad = [&](std::string what) {
    return unexpected(ErrorCode::bad_checkpoint, std::move(what), path,
                      "write the checkpoint again with `oasr quantize`");
  };
  const auto found = std::find_if(layers.begin(), layers.end(),
                                  [&](const auto& layer) { return layer.path == path; });
  if (found == layers.end()) {
    return unexpected(ErrorCode::bad_checkpoint, "the model has no such layer to quantize", path,
                      "check that configuration and weights are of the same model");
  }
  const auto scheme = known_scheme(stored.scheme);
  if (!scheme) return bad(scheme.error().what);
  if (const auto reason = why_not_served(**scheme, *found); !reason.empty()) {
    return bad("it is stored quantized and can not be: " + reason);
  }
  const auto kind = enum_name(quant_kind_names(), found->kind);
  if (needs_static_input(found->kind)) {
    if (!has_convolutions((*scheme)->weights.format)) {
      return bad(fmt::format("{} has no kernels for {}", stored.scheme, kind));
    }
    if ((*scheme)->activations.dynamic) {
      return bad(
          fmt::format("{} has no static input scale, and {} needs one", stored.scheme, kind));
    }
  }
  if (auto served = find_scheme(stored.scheme); !served) {
    Error& error = served.error();
    error.where = path;
    return unexpected(std::move(error));
  }
  return {};
}

// Whether a layer of `scheme` comes from asking for `asked`: it has that, its fallback, or a static form.
bool comes_from(const std::string& scheme, const std::string& asked) {
  const auto known = known_scheme(asked);
  if (!known) return false;
  for (const std::string_view base : {std::string_view(asked), (*known)->fallback}) {
    if (scheme == base) return true;
    const auto row = known_scheme(base);
    const auto fixed = row ? scheme_for(**row, QuantKind::conv2d) : row;
    if (fixed && scheme == (*fixed)->name) return true;
  }
  return false;
}

// The schemes that a spec was asked for with and those of its layers explain each other.
Status check_schemes(const QuantizationSpec& spec) {
  for (const std::string& name : spec.schemes) {
    TRY(known_scheme(name));
    const auto serves = [&](const auto& entry) { return comes_from(entry.second.scheme, name); };
    if (std::ranges::any_of(spec.layers, serves)) continue;
    return unexpected(ErrorCode::bad_checkpoint, fmt::format("no layer is quantized as '{}'", name),
                      "quantization.schemes");
  }
  return {};
}

Status check_explained(const QuantizationSpec& spec) {
  for (const auto& [path, layer] : spec.layers) {
    const auto explains = [&](const std::string& asked) { return comes_from(layer.scheme, asked); };
    if (std::ranges::any_of(spec.schemes, explains)) continue;
    return unexpected(
        ErrorCode::bad_checkpoint,
        fmt::format("is quantized as '{}', which quantization.schemes does not explain", layer.scheme), path,
        "write the checkpoint again with `oasr quantize`");
  }
  return {};
}

}  // namespace

Status check_authority(const QuantizationSpec& stored, const QuantRequest& request) {
  if (stored.empty()) return {};
  if (!request.scheme.empty()) {
    TRY(known_scheme(request.scheme));
    const auto own = own_schemes(stored);
    if (std::find(own.begin(), own.end(), request.scheme) == own.end()) {
      return unexpected(ErrorCode::invalid_argument,
                        fmt::format("the checkpoint is quantized as {}, not as {}",
                                    fmt::join(own, " and "), request.scheme),
                        "quantization", kRemedy);
    }
  }
  const auto chosen = [](const char* option) {
    return unexpected(ErrorCode::invalid_argument,
                      "the checkpoint is quantized, and its layers are already chosen", option,
                      kRemedy);
  };
  if (!request.ignore.empty()) return chosen("ignore");
  if (!request.module_types.empty()) return chosen("module_types");
  if (!request.layers.empty()) return chosen("layers");
  return {};
}

Status check_layers(const QuantizationSpec& spec, std::span<const LayerFacts> layers) {
  TRY(check_schemes(spec));
  for (const auto& [path, stored] : spec.layers) TRY(check_layer(path, stored, layers));
  return check_explained(spec);
}

}  // namespace oasr::quant
