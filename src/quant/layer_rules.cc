#include "quant/layer_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/glob.h"

namespace oasr::quant {
namespace {

constexpr std::array kKindNames = {
    EnumName<QuantKind>{QuantKind::linear, "linear"},
    EnumName<QuantKind>{QuantKind::pointwise_conv, "pointwise_conv"},
    EnumName<QuantKind>{QuantKind::conv1d, "conv1d"},
    EnumName<QuantKind>{QuantKind::conv2d, "conv2d"},
};

struct KindFacts {
  QuantKind kind;
  bool by_default;
  bool convolution;  // by its name: in the group conv
  bool static_input;
};

constexpr std::array kKinds = {
    KindFacts{
        .kind = QuantKind::linear, .by_default = true, .convolution = false, .static_input = false},
    KindFacts{.kind = QuantKind::pointwise_conv,
              .by_default = true,
              .convolution = true,
              .static_input = false},
    KindFacts{
        .kind = QuantKind::conv1d, .by_default = false, .convolution = true, .static_input = true},
    KindFacts{
        .kind = QuantKind::conv2d, .by_default = false, .convolution = true, .static_input = true},
};

struct KindGroup {
  std::string_view name;
  bool (*holds)(const KindFacts&);
};

constexpr std::array kGroups = {
    KindGroup{.name = "conv", .holds = [](const KindFacts& facts) { return facts.convolution; }},
    KindGroup{.name = "all", .holds = [](const KindFacts&) { return true; }},
};

// Whether a word of module_types names a kind, itself or through a group.
bool names_kind(std::string_view word, const KindFacts& facts) {
  if (word == enum_name(quant_kind_names(), facts.kind)) return true;
  return std::any_of(kGroups.begin(), kGroups.end(),
                     [&](const auto& group) { return word == group.name && group.holds(facts); });
}

Unexpected unknown_kind(const std::string& word) {
  std::vector<std::string_view> names;
  for (const auto& row : kKindNames) names.push_back(row.name);
  for (const auto& group : kGroups) names.push_back(group.name);
  return unexpected(
      ErrorCode::invalid_argument, fmt::format("'{}' is not a kind of layer", word), "module_types",
      fmt::format("{}kinds and groups: {}", did_you_mean(word, names), fmt::join(names, ", ")));
}

}  // namespace

std::span<const EnumName<QuantKind>> quant_kind_names() { return kKindNames; }

Result<std::vector<QuantKind>> resolve_kinds(std::span<const std::string> module_types) {
  for (const auto& word : module_types) {
    const bool known = std::any_of(kKinds.begin(), kKinds.end(),
                                   [&](const auto& facts) { return names_kind(word, facts); });
    if (!known) return unknown_kind(word);
  }
  std::vector<QuantKind> kinds;
  for (const auto& facts : kKinds) {
    const bool named = std::any_of(module_types.begin(), module_types.end(),
                                   [&](const auto& word) { return names_kind(word, facts); });
    if (named || (module_types.empty() && facts.by_default)) kinds.push_back(facts.kind);
  }
  return kinds;
}

bool needs_static_input(QuantKind kind) {
  return std::any_of(kKinds.begin(), kKinds.end(),
                     [&](const auto& facts) { return facts.kind == kind && facts.static_input; });
}

std::string kind_list(std::span<const QuantKind> kinds, std::string_view comma) {
  std::vector<std::string_view> names;
  for (const auto kind : kinds) names.push_back(enum_name(quant_kind_names(), kind));
  return fmt::format("{}", fmt::join(names, comma));
}

std::string why_not_served(const QuantScheme& scheme, const LayerFacts& layer) {
  if (!layer.not_quantizable.empty()) return layer.not_quantizable;
  if (layer.groups != 1) {
    return fmt::format("it has {} groups, and only dense convolutions have a kernel", layer.groups);
  }
  const std::string_view unit = layer.kind == QuantKind::linear ? "features" : "channels";
  std::vector<std::string> reasons;
  const auto check = [&](std::string_view side, std::int64_t extent, std::int64_t multiple) {
    if (extent % multiple == 0) return;
    reasons.push_back(fmt::format("{}_{} {} is not a multiple of {}", side, unit, extent, multiple));
  };
  check("in", layer.in_features, scheme.shape.in_multiple);
  check("out", layer.out_features, scheme.shape.out_multiple);
  return fmt::format("{}", fmt::join(reasons, ", "));
}

Result<const QuantScheme*> scheme_for(const QuantScheme& scheme, QuantKind kind) {
  if (!needs_static_input(kind)) return &scheme;
  if (has_convolutions(scheme.weights.format) || scheme.fallback.empty()) return static_variant(scheme);
  const QuantScheme* fallback = TRY(known_scheme(scheme.fallback));
  return static_variant(*fallback);
}

}  // namespace oasr::quant
