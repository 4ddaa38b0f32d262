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

Int8Storage int8_storage(const W4Weight& weight, std::vector<float> smooth_inv) {
  Int8Storage storage{.weight = {},
                      .weight_scale = weight.channel_scale,
                      .smooth_inv = std::move(smooth_inv),
                      .input_scale = {}};
  storage.weight.resize(weight.codes.size());
  const auto k = static_cast<std::size_t>(weight.k);
  for (std::int64_t n = 0; n < weight.n; ++n) {
    formats::decode_row(weight, n, std::span(storage.weight).subspan(static_cast<std::size_t>(n) * k, k));
  }
  return storage;
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
                       kernels::Activation activation, const kernels::ScaledMMImplementation& implementation)
    : levels_(without_codes(weight)),
      product_(weight.n, weight.k, int8_storage(weight, std::move(smooth_inv)), std::move(bias), activation,
               implementation) {}

MethodInfo W4A8Linear::info(Isa isa) const {
  MethodInfo info = product_.info(isa);
  info.scheme = scheme_of(levels_.form);
  info.storage = levels_.form == W4Form::per_group ? "int4 g128" : "int4 chn";
  info.zero_domain = enum_name(formats::zero_domain_names(), levels_.domain);
  info.bytes += formats::packed_bytes(levels_.form, levels_.n, levels_.k) -
                static_cast<std::int64_t>(product_.weight().bytes());
  return info;
}

W4Weight W4A8Linear::weight() const {
  W4Weight weight = levels_;
  weight.codes.resize(static_cast<std::size_t>(weight.n * weight.k));
  std::vector<std::int8_t> row(static_cast<std::size_t>(weight.k));
  for (std::int64_t n = 0; n < weight.n; ++n) {
    product_.weight().unpack_row(n, row);
    const bool grouped = weight.form == W4Form::per_group;
    for (std::int64_t k = 0; k < weight.k; ++k) {
      const auto g = static_cast<std::size_t>(n * weight.groups() + k / formats::kGroup);
      const int scale = grouped ? weight.group_scale[g] : 1;
      const int zero = grouped ? weight.scaled_zero[g] : formats::zero_code(weight, n);
      weight.codes[static_cast<std::size_t>(n * weight.k + k)] =
          static_cast<std::uint8_t>((row[static_cast<std::size_t>(k)] + zero) / scale);
    }
  }
  return weight;
}

std::vector<TensorSource> W4A8Linear::state(const std::string& path) const {
  auto stored = stored_w4(weight(), product_.smooth_inv());
  CHECK(stored.has_value(), "a weight that was checked can be packed");
  const auto kept = std::make_shared<const QuantizedTensors>(std::move(*stored));
  std::vector<TensorSource> tensors = kept->sources(path);
  for (TensorSource& tensor : tensors) {
    tensor.row = [kept, row = std::move(tensor.row)](std::int64_t n, std::span<std::byte> out) {
      row(n, out);
    };
  }
  add_bias(path, product_.bias(), tensors);
  return tensors;
}

Result<W4Weight> encode_w4(W4Form form, std::int64_t n, std::int64_t k, const formats::RowSource& rows,
                           std::span<const double> importance) {
  TRY(formats::check_packed_shape(form, n, k));
  const formats::W4Options options{.form = form,
                                   .domain = *quantized_layer(scheme_of(form)).zero_domain,
                                   .search = form == W4Form::per_group || !importance.empty()};
  auto weight = formats::encode(n, k, rows, options, importance);
  if (!weight) return placed(std::move(weight).error());
  return weight;
}

Result<W4Weight> read_w4(W4Form form, ZeroDomain domain, const StoredSlots& slots) {
  if (form == W4Form::per_channel && domain == ZeroDomain::post_scaled) {
    return unexpected(ErrorCode::unsupported,
                      "no kernel here multiplies weights with float zeros per channel", {},
                      "use zeros that are codes (pre_scaled)");
  }
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
