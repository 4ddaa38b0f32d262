#include "quant/methods/w4a8_linear.h"

#include <cstring>
#include <memory>

#include "base/check.h"
#include "formats/w4_packed.h"

namespace oasr::quant {
namespace {

using formats::W4Form;
using formats::W4Weight;
using formats::ZeroDomain;

const char* scheme_of(W4Form form) { return form == W4Form::per_group ? "w4a8_g128" : "w4a8_chn"; }

kernels::PackedInt4Weight packed(const W4Weight& weight) {
  using kernels::PackedInt4Weight;
  if (weight.form == W4Form::per_group) {
    return PackedInt4Weight::pack_groups(weight.n, weight.k, weight.codes, weight.channel_scale,
                                         weight.group_scale, weight.scaled_zero);
  }
  if (weight.domain == ZeroDomain::post_scaled) {
    return PackedInt4Weight::pack_channels(weight.n, weight.k, weight.codes, weight.channel_scale, {},
                                           weight.channel_zero);
  }
  std::vector<std::uint8_t> zeros;
  for (std::int64_t n = 0; n < weight.n; ++n) {
    zeros.push_back(static_cast<std::uint8_t>(formats::zero_code(weight, n)));
  }
  return PackedInt4Weight::pack_channels(weight.n, weight.k, weight.codes, weight.channel_scale, zeros);
}

W4Weight without_codes(W4Weight weight) {
  weight.codes = {};
  return weight;
}

// The place of an error is in its text: callers put the layer's path there.
Unexpected placed(Error error) {
  if (!error.where.empty()) error.what = error.where + ": " + error.what;
  error.where.clear();
  return unexpected(std::move(error));
}

// Bytes of a slot in memory that is aligned for T.
template <class T>
std::vector<T> values_of(const StoredSlots& slots, std::string_view suffix) {
  const auto found = slots.find(suffix);
  if (found == slots.end()) return {};
  std::vector<T> values(found->second.bytes.size() / sizeof(T));
  std::memcpy(values.data(), found->second.bytes.data(), found->second.bytes.size());
  return values;
}

}  // namespace

W4A8Linear::W4A8Linear(const W4Weight& weight, std::vector<float> smooth_inv, std::vector<float> bias,
                       kernels::Activation activation, const kernels::Int4MMImplementation& implementation)
    : ScaledLinear(packed(weight), std::move(smooth_inv), std::nullopt, std::move(bias), activation,
                   implementation),
      levels_(without_codes(weight)) {}

MethodInfo W4A8Linear::info(Isa isa) const {
  MethodInfo info = kernel_info(isa);
  info.scheme = scheme_of(levels_.form);
  info.storage = levels_.form == W4Form::per_group ? "int4 g128" : "int4 chn";
  info.zero_domain = enum_name(formats::zero_domain_names(), levels_.domain);
  info.operands = "int8 x uint4";
  info.bytes += formats::packed_bytes(levels_.form, levels_.n, levels_.k);
  return info;
}

W4Weight W4A8Linear::unpacked() const {
  W4Weight all = levels_;
  const auto k = static_cast<std::size_t>(all.k);
  all.codes.resize(static_cast<std::size_t>(all.n) * k);
  for (std::int64_t n = 0; n < all.n; ++n) {
    weight().unpack_codes(n, std::span(all.codes).subspan(static_cast<std::size_t>(n) * k, k));
  }
  return all;
}

std::vector<TensorSource> W4A8Linear::state(const std::string& path) const {
  auto stored = stored_w4(unpacked(), smooth_inv());
  CHECK(stored.has_value(), "a weight that was checked can be packed");
  const auto kept = std::make_shared<const QuantizedTensors>(std::move(*stored));
  std::vector<TensorSource> tensors = kept->sources(path);
  for (TensorSource& tensor : tensors) {
    tensor.row = [kept, row = std::move(tensor.row)](std::int64_t n, std::span<std::byte> out) {
      row(n, out);
    };
  }
  add_bias(path, bias(), tensors);
  return tensors;
}

Result<W4Weight> encode_w4(W4Form form, std::int64_t n, std::int64_t k, const formats::RowSource& rows,
                           std::span<const double> importance, ThreadPool* pool) {
  TRY(formats::check_packed_shape(form, n, k));
  const formats::W4Options options{.form = form,
                                   .domain = *quantized_layer(scheme_of(form)).zero_domain,
                                   .search = form == W4Form::per_group || !importance.empty()};
  formats::ForEach each;
  if (pool != nullptr) {
    each = [pool](std::int64_t items, const std::function<void(std::int64_t)>& body) {
      pool->parallel_for(items, [&](std::int64_t item, int) { body(item); });
    };
  }
  auto weight = formats::encode(n, k, rows, options, importance, each);
  if (!weight) return placed(std::move(weight).error());
  return weight;
}

Result<W4Weight> read_w4(W4Form form, ZeroDomain domain, const StoredSlots& slots) {
  const Shape& shape = slots.at("qweight").shape;
  const auto qweight = values_of<std::uint8_t>(slots, "qweight");
  const auto s1_scales = values_of<Half>(slots, "s1_scales"), s1_szeros = values_of<Half>(slots, "s1_szeros");
  const auto s2_scales = values_of<std::int8_t>(slots, "s2_scales");
  const auto s2_zeros = values_of<std::int8_t>(slots, "s2_zeros");
  auto weight = formats::unpack({.form = form,
                                 .n = shape[0],
                                 .k = 2 * shape[1],
                                 .qweight = qweight,
                                 .s1_scales = s1_scales,
                                 .s2_scales = s2_scales,
                                 .s2_zeros = s2_zeros,
                                 .s1_szeros = s1_szeros},
                                domain);
  if (!weight) return placed(std::move(weight).error());
  return weight;
}

Result<QuantizedTensors> stored_w4(const W4Weight& weight, std::span<const float> smooth_inv) {
  auto made = formats::pack(weight);
  if (!made) return placed(std::move(made).error());
  const formats::PackedW4& packed = *made;
  const std::int64_t n = weight.n, k = weight.k;
  QuantizedTensors tensors;
  const auto add = [&](const char* suffix, StorageFormat format, const Shape& shape, const auto& values) {
    tensors.add(suffix, format, shape, std::as_bytes(std::span(values)));
  };
  add("qweight", StorageFormat::i8, {n, k / 2}, packed.qweight);
  add("s1_scales", StorageFormat::f16, {n}, packed.s1_scales);
  if (weight.form == W4Form::per_group) {
    add("s2_scales", StorageFormat::i8, {weight.groups(), n}, packed.s2_scales);
    add("s2_zeros", StorageFormat::i8, {weight.groups(), n}, packed.s2_zeros);
  } else {
    add("s1_szeros", StorageFormat::f16, {n}, packed.s1_szeros);
  }
  if (!smooth_inv.empty()) add("smooth_inv", StorageFormat::f32, {k}, smooth_inv);
  return tensors;
}

}  // namespace oasr::quant
