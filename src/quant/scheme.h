// Number formats and schemes as values: what a weight and an activation are stored as.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/enum_table.h"
#include "base/result.h"
#include "formats/w4_weight.h"

namespace oasr::quant {

enum class NumberFormat : std::uint8_t {
  int8,
  int4,  // codes 0..15 with a zero
  fp8_e4m3,
  nvfp4,
};
enum class Granularity : std::uint8_t {
  per_tensor,
  per_token,    // a scale a row of an activation
  per_channel,  // a scale an output channel of a weight
  per_group,    // a scale a run of consecutive values of a row
};
std::span<const EnumName<NumberFormat>> number_format_names();
std::span<const EnumName<Granularity>> granularity_names();

// How one side of a product is quantized.
struct QuantArgs {
  NumberFormat format = NumberFormat::int8;
  Granularity granularity = Granularity::per_channel;
  bool dynamic = false;  // the scale is computed from the values that are being quantized
  friend bool operator==(const QuantArgs&, const QuantArgs&) = default;
};

// The shapes of weights that kernels serve: multiples of these.
struct ShapeRule {
  std::int64_t in_multiple = 16, out_multiple = 8;
};

// A row of the table of schemes.
struct QuantScheme {
  std::string_view name;  // "int8_w8a8"
  std::string_view what;  // one line for help
  QuantArgs weights, activations;
  // Why no layer can be served with it, and what to use instead; empty when it is served.
  std::string_view refusal = {}, remedy = {};
  ShapeRule shape = {};
  // The scheme of convolutions and of layers that do not fit the shapes; empty: there is none.
  std::string_view fallback = {};
  // What the zeros are of weights that are quantized here; nothing: weights have no zeros.
  std::optional<formats::ZeroDomain> zero_domain = {};
};
std::span<const QuantScheme> quant_schemes();

// A scheme of the table, served or not. invalid_argument: there is none of that name (the served
// ones, and the nearest of them).
Result<const QuantScheme*> known_scheme(std::string_view name);

// A scheme that is served. unsupported: described but not served (the reason and the remedy);
// invalid_argument: not known.
Result<const QuantScheme*> find_scheme(std::string_view name);

// Whether such a pair can be served at all (unsupported, whatever kernels there are). A per-tensor
// dynamic activation scale can not: padding and neighbours in the batch would change every row.
Status check_args(const QuantArgs& weights, const QuantArgs& activations);

// The variant with a calibrated input scale of the same format ("int8_w8a8" -> "int8_w8a8_static"),
// for layers whose input scale must be static; a static scheme is its own. unsupported when the
// format has none.
Result<const QuantScheme*> static_variant(const QuantScheme& scheme);

// Whether conv1d and conv2d have kernels in a format; pointwise convolutions are products.
bool has_convolutions(NumberFormat format);

}  // namespace oasr::quant
