#include "quant/scheme.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/glob.h"
#include "formats/w4_packed.h"

namespace oasr::quant {
namespace {

constexpr std::array kFormatNames = {
    EnumName<NumberFormat>{NumberFormat::int8, "int8"},
    EnumName<NumberFormat>{NumberFormat::int4, "int4"},
    EnumName<NumberFormat>{NumberFormat::fp8_e4m3, "fp8_e4m3"},
    EnumName<NumberFormat>{NumberFormat::nvfp4, "nvfp4"},
};

constexpr std::array kGranularityNames = {
    EnumName<Granularity>{Granularity::per_tensor, "per_tensor"},
    EnumName<Granularity>{Granularity::per_token, "per_token"},
    EnumName<Granularity>{Granularity::per_channel, "per_channel"},
    EnumName<Granularity>{Granularity::per_group, "per_group"},
};

constexpr QuantArgs per_channel(NumberFormat format) {
  return {.format = format, .granularity = Granularity::per_channel, .dynamic = false};
}

constexpr QuantArgs per_token(NumberFormat format) {
  return {.format = format, .granularity = Granularity::per_token, .dynamic = true};
}

constexpr QuantArgs static_input(NumberFormat format) {
  return {.format = format, .granularity = Granularity::per_tensor, .dynamic = false};
}

constexpr std::array kSchemes = {
    QuantScheme{.name = "int8_w8a8",
                .what = "int8 weights, a scale a channel; int8 activations, a scale a token",
                .weights = per_channel(NumberFormat::int8),
                .activations = per_token(NumberFormat::int8)},
    QuantScheme{.name = "int8_w8a8_static",
                .what = "int8 weights, a scale a channel; int8 activations, one calibrated scale",
                .weights = per_channel(NumberFormat::int8),
                .activations = static_input(NumberFormat::int8)},
    // Post-scaled zeros lose less (formats/w4_encoder.h); per channel only codes stand for int8 weights.
    QuantScheme{.name = "w4a8_g128",
                .what = "4-bit weights, an integer scale and zero a group of 128; int8 activations, a scale a "
                        "token",
                .weights = {.format = NumberFormat::int4, .granularity = Granularity::per_group, .dynamic = false},
                .activations = per_token(NumberFormat::int8),
                .shape = {.in_multiple = formats::kGroup, .out_multiple = formats::kTile},
                .fallback = "int8_w8a8",
                .zero_domain = formats::ZeroDomain::post_scaled},
    QuantScheme{.name = "w4a8_chn",
                .what = "4-bit weights, a scale and zero a channel; int8 activations, a scale a token",
                .weights = per_channel(NumberFormat::int4),
                .activations = per_token(NumberFormat::int8),
                .shape = {.in_multiple = formats::kTile, .out_multiple = formats::kTile},
                .fallback = "int8_w8a8",
                .zero_domain = formats::ZeroDomain::pre_scaled},
    QuantScheme{.name = "fp8_w8a8",
                .what = "fp8 e4m3 weights, a scale a channel; fp8 activations, a scale a token",
                .weights = per_channel(NumberFormat::fp8_e4m3),
                .activations = per_token(NumberFormat::fp8_e4m3),
                .refusal = "no kernel here multiplies fp8",
                .remedy = "use int8_w8a8"},
    QuantScheme{
        .name = "fp8_w8a8_static",
        .what = "fp8 e4m3 weights, a scale a channel; fp8 activations, one calibrated scale",
        .weights = per_channel(NumberFormat::fp8_e4m3),
        .activations = static_input(NumberFormat::fp8_e4m3),
        .refusal = "no kernel here multiplies fp8",
        .remedy = "use int8_w8a8_static"},
    QuantScheme{.name = "nvfp4",
                .what = "4-bit floats on both sides, a scale a group of values",
                .weights = {.format = NumberFormat::nvfp4,
                            .granularity = Granularity::per_group,
                            .dynamic = false},
                .activations = {.format = NumberFormat::nvfp4,
                                .granularity = Granularity::per_group,
                                .dynamic = true},
                .refusal = "no kernel here multiplies nvfp4",
                .remedy = "use int8_w8a8"},
};

// A pair of arguments that no kernel could serve.
struct ArgsRule {
  bool (*broken)(const QuantArgs& weights, const QuantArgs& activations);
  std::string_view where, what, remedy;
};

constexpr std::array kArgsRules = {
    ArgsRule{.broken = [](const QuantArgs& w, const QuantArgs&) { return w.dynamic; },
             .where = "weights",
             .what = "a weight's scale can not be dynamic: it is stored with the weight",
             .remedy = "use a static scale"},
    ArgsRule{.broken = [](const QuantArgs& w,
                          const QuantArgs&) { return w.granularity == Granularity::per_token; },
             .where = "weights",
             .what = "a weight has no tokens to have scales of",
             .remedy = "use per_channel"},
    ArgsRule{.broken =
                 [](const QuantArgs&, const QuantArgs& a) {
                   return a.granularity == Granularity::per_tensor && a.dynamic;
                 },
             .where = "activations",
             .what = "one dynamic scale for a whole tensor would make a row depend on the padding "
                     "and on what is decoded beside it",
             .remedy = "use per_token, or a static scale"},
    ArgsRule{.broken =
                 [](const QuantArgs&, const QuantArgs& a) {
                   return a.granularity == Granularity::per_token && !a.dynamic;
                 },
             .where = "activations",
             .what = "a scale a token can not be static: the tokens are not known before",
             .remedy = "use a dynamic scale, or per_tensor"},
    ArgsRule{.broken = [](const QuantArgs&,
                          const QuantArgs& a) { return a.granularity == Granularity::per_channel; },
             .where = "activations",
             .what = "a scale an input channel does not factor out of the product's sum",
             .remedy = "use per_token, and smooth the channels"},
};

}  // namespace

std::span<const EnumName<NumberFormat>> number_format_names() { return kFormatNames; }
std::span<const EnumName<Granularity>> granularity_names() { return kGranularityNames; }
std::span<const QuantScheme> quant_schemes() { return kSchemes; }

Result<const QuantScheme*> known_scheme(std::string_view name) {
  std::vector<std::string_view> served;
  for (const auto& scheme : kSchemes) {
    if (scheme.name == name) return &scheme;
    if (scheme.refusal.empty()) served.push_back(scheme.name);
  }
  return unexpected(
      ErrorCode::invalid_argument, fmt::format("'{}' is not a scheme", name), "quantization",
      fmt::format("{}schemes: {}", did_you_mean(name, served), fmt::join(served, ", ")));
}

Result<const QuantScheme*> find_scheme(std::string_view name) {
  const QuantScheme* scheme = TRY(known_scheme(name));
  if (scheme->refusal.empty()) return scheme;
  return unexpected(ErrorCode::unsupported,
                    fmt::format("{} is not served: {}", name, scheme->refusal), "quantization",
                    std::string(scheme->remedy));
}

Status check_args(const QuantArgs& weights, const QuantArgs& activations) {
  for (const auto& rule : kArgsRules) {
    if (!rule.broken(weights, activations)) continue;
    return unexpected(ErrorCode::unsupported, std::string(rule.what), std::string(rule.where),
                      std::string(rule.remedy));
  }
  return {};
}

Result<const QuantScheme*> static_variant(const QuantScheme& scheme) {
  const auto wanted = static_input(scheme.activations.format);
  const auto* found = std::find_if(kSchemes.begin(), kSchemes.end(), [&](const auto& row) {
    return row.weights == scheme.weights && row.activations == wanted;
  });
  if (found != kSchemes.end()) return found;
  return unexpected(ErrorCode::unsupported,
                    fmt::format("{} has no variant with a static input scale", scheme.name),
                    "quantization", "use int8_w8a8_static");
}

bool has_convolutions(NumberFormat format) {
  switch (format) {
    case NumberFormat::int8:
      return true;
    case NumberFormat::int4:
    case NumberFormat::fp8_e4m3:
    case NumberFormat::nvfp4:
      return false;
  }
  return false;
}

}  // namespace oasr::quant
