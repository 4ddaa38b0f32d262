#include "quant/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/glob.h"
#include "quant/layer_rules.h"

namespace oasr::quant {
namespace {

Unexpected invalid(const char* option, std::string what, std::string remedy) {
  return unexpected(ErrorCode::invalid_argument, std::move(what), option, std::move(remedy));
}

Unexpected unsupported(const char* option, std::string what, std::string remedy) {
  return unexpected(ErrorCode::unsupported, std::move(what), option, std::move(remedy));
}

// The option that says which kinds of layers are meant.
const char* kinds_option(const QuantRequest& request) {
  if (!request.layers.empty()) return "layers";
  return request.module_types.empty() ? "quantization" : "module_types";
}

// An option that can be given, and whether it was.
struct Choice {
  const char* option;
  bool given;
};

// Options that choose layers need a scheme, and named layers leave the others nothing to choose.
Status check_options(const QuantRequest& request) {
  const std::array choices = {
      Choice{.option = "ignore", .given = !request.ignore.empty()},
      Choice{.option = "module_types", .given = !request.module_types.empty()},
      Choice{.option = "layers", .given = !request.layers.empty()}};
  for (const auto& choice : choices) {
    if (!choice.given) continue;
    if (request.scheme.empty()) {
      return invalid(choice.option, "it chooses layers to quantize, and no scheme was asked for",
                     "name a scheme, such as int8_w8a8");
    }
    if (!request.layers.empty() && choice.option != std::string_view("layers")) {
      return invalid(choice.option, "the layers are named one by one, so it would choose nothing",
                     "leave out either layers or this");
    }
  }
  return {};
}

std::vector<std::string_view> paths_of(std::span<const LayerFacts> layers) {
  std::vector<std::string_view> paths;
  for (const auto& layer : layers) paths.push_back(layer.path);
  return paths;
}

// The remedy for a glob or a path that matches nothing. There is a layer.
std::string path_hint(std::string_view given, std::span<const LayerFacts> layers) {
  const auto paths = paths_of(layers);
  std::vector<std::string_view> examples = {paths.front()};
  if (paths.size() > 1) examples.push_back(paths.back());
  return fmt::format("{}paths are like {}", did_you_mean(given, paths), fmt::join(examples, ", "));
}

Status check_globs(const QuantRequest& request, std::span<const LayerFacts> layers) {
  for (const auto& glob : request.ignore) {
    const bool matches = std::any_of(layers.begin(), layers.end(), [&](const auto& layer) {
      return matches_glob(glob, layer.path);
    });
    if (!matches) {
      return invalid("ignore", fmt::format("no layer matches '{}'", glob), path_hint(glob, layers));
    }
  }
  return {};
}

bool is_ignored(const QuantRequest& request, const LayerFacts& layer) {
  return std::any_of(request.ignore.begin(), request.ignore.end(),
                     [&](const auto& glob) { return matches_glob(glob, layer.path); });
}

bool holds(std::span<const QuantKind> kinds, QuantKind kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

// The kinds of all layers, each once, in the order of the enum.
std::vector<QuantKind> kinds_of(std::span<const LayerFacts> layers) {
  std::vector<QuantKind> kinds;
  for (const auto& row : quant_kind_names()) {
    const bool there = std::any_of(layers.begin(), layers.end(),
                                   [&](const auto& layer) { return layer.kind == row.value; });
    if (there) kinds.push_back(row.value);
  }
  return kinds;
}

// The layers that a request names, every one of which a kernel of the scheme can serve.
Result<std::vector<LayerFacts>> named_layers(const QuantRequest& request, const QuantScheme& scheme,
                                             std::span<const LayerFacts> layers) {
  std::vector<LayerFacts> named;
  for (const auto& path : request.layers) {
    const auto found = std::find_if(layers.begin(), layers.end(),
                                    [&](const auto& layer) { return layer.path == path; });
    if (found == layers.end()) {
      return invalid("layers", fmt::format("there is no layer '{}'", path),
                     path_hint(path, layers));
    }
    const auto own = scheme_for(scheme, found->kind);
    const std::string reason = why_not_served(own ? **own : scheme, *found);
    if (!reason.empty()) {
      return unsupported("layers", fmt::format("'{}' can not be quantized: {}", path, reason),
                         "leave it out");
    }
    named.push_back(*found);
  }
  return named;
}

// Whether a scheme can serve kinds of layers at all, and with the scales there are.
Status check_kinds(const QuantRequest& request, const QuantScheme& scheme,
                   std::span<const QuantKind> kinds, Origin origin) {
  std::vector<QuantKind> static_kinds;
  std::copy_if(kinds.begin(), kinds.end(), std::back_inserter(static_kinds), needs_static_input);
  const std::string convolutions = kind_list(static_kinds);
  if (!static_kinds.empty() && !has_convolutions(scheme.weights.format) && scheme.fallback.empty()) {
    return unsupported(kinds_option(request),
                       fmt::format("{} has no kernels for {}", scheme.name, convolutions),
                       "use int8_w8a8, or leave them out");
  }
  TRY(find_scheme(scheme.name));
  if (origin == Origin::calibrated) return {};
  if (!scheme.activations.dynamic) {
    return unsupported("quantization",
                       fmt::format("{} needs calibrated input scales, and loading a model "
                                   "calibrates nothing",
                                   scheme.name),
                       "write a checkpoint with `oasr quantize`, or use int8_w8a8");
  }
  if (static_kinds.empty()) return {};
  const std::string option =
      request.layers.empty() ? " --module-types " + kind_list(kinds, ",") : std::string();
  return unsupported(
      kinds_option(request),
      fmt::format("a calibrated input scale is needed for {}, and loading a model calibrates "
                  "nothing",
                  convolutions),
      fmt::format("write a checkpoint with `oasr quantize{}`, or leave them out", option));
}

// Nothing was chosen: why.
Unexpected nothing_left(const QuantRequest& request, std::span<const LayerFacts> layers,
                        std::span<const QuantKind> kinds, const Producer& producer) {
  const auto of_kinds = std::count_if(layers.begin(), layers.end(),
                                      [&](const auto& layer) { return holds(kinds, layer.kind); });
  if (of_kinds == 0) {
    return invalid(kinds_option(request), "the model has no layer of kind " + kind_list(kinds),
                   "it has layers of kind " + kind_list(kinds_of(layers)));
  }
  const auto& skipped = producer.skipped;
  std::string what = fmt::format("no layer is left to quantize: of {}, {} ignored and {} skipped",
                                 of_kinds, of_kinds - std::ssize(skipped), skipped.size());
  if (!skipped.empty()) {
    what += fmt::format("; the first skipped is {}: {}", skipped[0].path, skipped[0].reason);
  }
  return invalid("quantization", std::move(what), "ignore fewer layers, or choose other kinds");
}

struct Served {
  const QuantScheme* scheme = nullptr;  // null: full precision
  std::string reason = {};              // why it is not the scheme that was asked for
};

// How a layer that its kind selected is served.
Result<Served> served(const QuantScheme& scheme, const LayerFacts& layer) {
  const QuantScheme* own = TRY(scheme_for(scheme, layer.kind));
  std::string reason = why_not_served(*own, layer);
  if (reason.empty()) return Served{.scheme = own};
  if (own->fallback.empty()) return Served{.reason = std::move(reason)};
  const QuantScheme* fallback = TRY(known_scheme(own->fallback));
  if (auto also = why_not_served(*fallback, layer); !also.empty()) return Served{.reason = std::move(also)};
  return Served{.scheme = fallback, .reason = fmt::format("{}: {} instead", reason, fallback->name)};
}

Status choose_by_kind(const QuantRequest& request, const QuantScheme& scheme,
                      std::span<const QuantKind> kinds, std::span<const LayerFacts> layers,
                      QuantizationSpec& spec) {
  for (const auto& layer : layers) {
    if (!holds(kinds, layer.kind) || is_ignored(request, layer)) continue;
    Served how = TRY(served(scheme, layer));
    if (how.scheme != nullptr) spec.layers[layer.path] = quantized_layer(how.scheme->name);
    if (!how.reason.empty()) {
      spec.producer.skipped.push_back({.path = layer.path, .reason = std::move(how.reason)});
    }
  }
  if (spec.layers.empty()) return nothing_left(request, layers, kinds, spec.producer);
  for (const auto kind : kinds) {
    spec.module_types.emplace_back(enum_name(quant_kind_names(), kind));
  }
  return {};
}

}  // namespace

Status add_option(QuantRequest& request, std::string_view text) {
  constexpr const char* kOption = "quantization_option";
  static constexpr std::array<std::string_view, 2> kKeys = {"ignore", "module_types"};
  const auto equals = text.find('=');
  const auto key = text.substr(0, equals);
  if (key == "kv_cache") {
    return unexpected(ErrorCode::unsupported, fmt::format("'{}': no kernel reads keys and values of 8 bits yet", text),
                      kOption, "leave it out: caches are float32, of cross-attention float16 beside quantized weights");
  }
  if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
    return invalid(kOption, fmt::format("'{}' is not an option of quantization", key),
                   fmt::format("{}options: {}", did_you_mean(key, kKeys), fmt::join(kKeys, ", ")));
  }
  const std::string remedy = fmt::format("write {}=VALUE, several with commas", key);
  if (equals == text.npos) return invalid(kOption, fmt::format("'{}' has no value", key), remedy);
  std::vector<std::string> values;
  for (std::string_view rest = text.substr(equals);;) {
    rest.remove_prefix(1);  // "=" or ","
    const auto comma = std::min(rest.find(','), rest.size());
    if (comma == 0) {
      return invalid(kOption, fmt::format("'{}' has an empty value", text), remedy);
    }
    values.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(comma);
    if (rest.empty()) break;
  }
  auto& into = key == "ignore" ? request.ignore : request.module_types;
  into.insert(into.end(), values.begin(), values.end());
  return {};
}

Result<QuantizationSpec> select(const QuantRequest& request, std::span<const LayerFacts> layers,
                                Origin origin) {
  TRY(check_options(request));
  QuantizationSpec spec;
  if (request.scheme.empty()) return spec;
  const QuantScheme* scheme = TRY(known_scheme(request.scheme));
  if (layers.empty()) {
    return invalid("quantization", "the model has no layer that can be quantized",
                   "leave the scheme out");
  }
  const bool by_kind = request.layers.empty();
  const auto named = TRY(named_layers(request, *scheme, layers));
  const auto kinds = by_kind ? TRY(resolve_kinds(request.module_types)) : kinds_of(named);
  TRY(check_kinds(request, *scheme, kinds, origin));
  TRY(check_globs(request, layers));

  spec.schemes = {request.scheme};
  spec.ignore = request.ignore;
  spec.producer.tool = "oasr";
  if (origin == Origin::online) spec.producer.recipe = "online";
  if (by_kind) {
    TRY(choose_by_kind(request, *scheme, kinds, layers, spec));
    return spec;
  }
  for (const auto& layer : named) {
    const QuantScheme* own = TRY(scheme_for(*scheme, layer.kind));
    spec.layers[layer.path] = quantized_layer(own->name);
  }
  return spec;
}

}  // namespace oasr::quant
