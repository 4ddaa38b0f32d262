#include "formats/w4_packed.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/check.h"
#include "formats/indexing.h"

namespace oasr::formats {
namespace {

constexpr std::array kOrderNames = {
    EnumName<ScaleOrder>{ScaleOrder::quads, "quads"},
    EnumName<ScaleOrder>{ScaleOrder::pairs, "pairs"},
};

void pack_groups(const W4Weight& weight, PackedW4& out) {
  out.s2_scales.resize(weight.group_scale.size());
  out.s2_zeros.resize(weight.group_scale.size());
  for (std::int64_t n = 0; n < weight.n; ++n) {
    for (std::int64_t g = 0; g < weight.groups(); ++g) {
      const std::size_t from = at(n * weight.groups() + g);
      const std::size_t to = at(g * weight.n + scale_place(ScaleOrder::quads, n));
      out.s2_scales[to] = static_cast<std::int8_t>(weight.group_scale[from]);
      out.s2_zeros[to] = static_cast<std::int8_t>(zero_byte(weight.scaled_zero[from]));
    }
  }
}

// The zero that a byte stands for depends on the codes: every code that occurs is an int8 with one of them.
void unpack_groups(const PackedW4View& packed, ScaleOrder order, W4Weight& out) {
  for (std::int64_t n = 0; n < out.n; ++n) {
    for (std::int64_t g = 0; g < out.groups(); ++g) {
      const std::size_t from = at(g * out.n + scale_place(order, n)), to = at(n * out.groups() + g);
      const unsigned code = out.codes[at(n * out.k + g * kGroup)];
      const auto scale = static_cast<std::uint8_t>(packed.s2_scales[from]);
      const int value = byte_value(code, scale, static_cast<std::uint8_t>(packed.s2_zeros[from]));
      out.group_scale[to] = scale;
      out.scaled_zero[to] = static_cast<std::int16_t>(static_cast<int>(code * scale) - value);
    }
  }
}

// A stored zero is rounded; of a code it is the product with the scale.
void unpack_channel_zeros(const PackedW4View& packed, W4Weight& out) {
  for (std::size_t n = 0; n < packed.s1_szeros.size(); ++n) {
    const float stored = to_float(packed.s1_szeros[n]), scale = out.channel_scale[n];
    out.channel_zero[n] = stored;
    if (out.domain == ZeroDomain::post_scaled) continue;
    const float product = std::nearbyint(stored / scale) * scale;
    if (to_half(product).bits == packed.s1_szeros[n].bits) out.channel_zero[n] = product;
  }
}

bool has_sizes(const PackedW4View& packed) {
  const std::size_t n = at(packed.n), groups = packed.form == W4Form::per_group ? at(packed.k / kGroup) : 0;
  return packed.qweight.size() == n * at(packed.k) / 2 && packed.s1_scales.size() == n &&
         packed.s2_scales.size() == n * groups && packed.s2_zeros.size() == n * groups &&
         packed.s1_szeros.size() == (packed.form == W4Form::per_channel ? n : 0);
}

}  // namespace

std::span<const EnumName<ScaleOrder>> scale_order_names() { return kOrderNames; }

PackedW4View PackedW4::view() const {
  return {.form = form,
          .n = n,
          .k = k,
          .qweight = qweight,
          .s1_scales = s1_scales,
          .s2_scales = s2_scales,
          .s2_zeros = s2_zeros,
          .s1_szeros = s1_szeros};
}

std::int64_t packed_bytes(W4Form form, std::int64_t n, std::int64_t k) {
  return n * k / 2 + (form == W4Form::per_group ? 2 * n * (k / kGroup) + 2 * n : 4 * n);
}

Status check_packed_shape(W4Form form, std::int64_t n, std::int64_t k) {
  TRY(check_shape(form, n, k));
  if (n % kTile == 0 && k % kTile == 0) return {};
  return unexpected(ErrorCode::unsupported,
                    fmt::format("a weight [{}, {}] does not fill tiles of {} by {}", n, k, kTile, kTile), {},
                    "leave the layer in int8 or at full precision");
}

Result<PackedW4> pack(const W4Weight& weight) {
  TRY(check_packed_shape(weight.form, weight.n, weight.k));
  TRY(check(weight));
  PackedW4 out;
  out.form = weight.form;
  out.n = weight.n;
  out.k = weight.k;
  out.qweight.resize(weight.codes.size() / 2);
  for (std::int64_t n = 0; n < weight.n; ++n) {
    for (std::int64_t k = 0; k < weight.k; ++k) {
      const NibblePlace place = nibble_place(weight.k, n, k);
      out.qweight[at(place.byte)] |=
          static_cast<std::uint8_t>(weight.codes[at(n * weight.k + k)] << place.shift);
    }
  }
  for (const float scale : weight.channel_scale) out.s1_scales.push_back(to_half(scale));
  if (weight.form == W4Form::per_group) pack_groups(weight, out);
  for (const float zero : weight.channel_zero) {
    out.s1_szeros.push_back(to_half(zero));
    if (std::isfinite(to_float(out.s1_szeros.back()))) continue;
    return unexpected(ErrorCode::bad_checkpoint, fmt::format("the zero {} is too great for a float16", zero),
                      fmt::format("channel {}", out.s1_szeros.size() - 1),
                      "leave the layer in int8 or at full precision");
  }
  return out;
}

Result<W4Weight> unpack(const PackedW4View& packed, ZeroDomain domain, ScaleOrder order) {
  TRY(check_packed_shape(packed.form, packed.n, packed.k));
  if (!has_sizes(packed)) {
    return unexpected(ErrorCode::bad_checkpoint,
                      fmt::format("the tensors have other sizes than a weight [{}, {}] {} has", packed.n,
                                  packed.k, enum_name(w4_form_names(), packed.form)),
                      {}, "the group size, or the file, is another one");
  }
  W4Weight weight = W4Weight::sized(packed.form, domain, packed.n, packed.k);
  for (std::int64_t n = 0; n < weight.n; ++n) {
    for (std::int64_t k = 0; k < weight.k; ++k) {
      const NibblePlace place = nibble_place(weight.k, n, k);
      weight.codes[at(n * weight.k + k)] = packed.qweight[at(place.byte)] >> place.shift & kMostCode;
    }
  }
  for (std::size_t n = 0; n < packed.s1_scales.size(); ++n)
    weight.channel_scale[n] = to_float(packed.s1_scales[n]);
  if (packed.form == W4Form::per_group) unpack_groups(packed, order, weight);
  unpack_channel_zeros(packed, weight);
  TRY(check(weight));
  return weight;
}

}  // namespace oasr::formats
