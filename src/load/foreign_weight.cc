#include "load/foreign_weight.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace oasr::load {
namespace {

using formats::CodeSet;
using formats::ImportedW4;
using formats::ScaleOrder;
using formats::W4Form;
using formats::W4Weight;
using formats::ZeroDomain;

constexpr std::array kGroupNames = {
    EnumName<W4Form>{W4Form::per_group, "128"},
    EnumName<W4Form>{W4Form::per_channel, "channel"},
};
std::span<const EnumName<W4Form>> group_names() { return kGroupNames; }

constexpr std::array kCodeSetNames = {
    EnumName<CodeSet>{CodeSet::occurring, "occurring"},
    EnumName<CodeSet>{CodeSet::all, "all"},
};
std::span<const EnumName<CodeSet>> code_set_names() { return kCodeSetNames; }

constexpr std::array kZeroSumNames = {
    EnumName<ZeroSum>{ZeroSum::codes, "codes"},
    EnumName<ZeroSum>{ZeroSum::inputs, "inputs"},
};
std::span<const EnumName<ZeroSum>> zero_sum_names() { return kZeroSumNames; }

Unexpected bad(std::string what) { return unexpected(ErrorCode::bad_checkpoint, std::move(what)); }

template <class E>
Status set_claim(std::optional<E>& claim, std::span<const EnumName<E>> names, std::string_view key,
                 std::string_view value) {
  if (claim) {
    return unexpected(ErrorCode::invalid_argument, fmt::format("'{}' is given twice", key), "w4");
  }
  claim = parse_enum(names, value);
  if (claim) return {};
  return unexpected(ErrorCode::invalid_argument, fmt::format("{} can not be '{}'", key, value), "w4",
                    fmt::format("it is one of {}", enum_names(names)));
}

// A claim is what the tensors say, or nothing.
template <class E>
Status check_claim(const std::optional<E>& claim, E found, std::span<const EnumName<E>> names,
                   const char* key) {
  if (!claim || *claim == found) return {};
  return unexpected(ErrorCode::invalid_argument,
                    fmt::format("{} is said to be {}, but the tensors say {}", key, enum_name(names, *claim),
                                enum_name(names, found)));
}

Status check_form(const W4Claims& claims, W4Form form) {
  if (claims.order && form == W4Form::per_channel) {
    return unexpected(ErrorCode::invalid_argument, "an order of scales is given, but channels have none");
  }
  return check_claim(claims.form, form, group_names(), "group");
}

Status check_no_order(const W4Claims& claims) {
  if (!claims.order) return {};
  return unexpected(ErrorCode::invalid_argument,
                    "an order of scales is given, but only packed tensors have one");
}

// The tensors of a layer, of which each has to have a format and a shape.
class Slots {
 public:
  explicit Slots(const ForeignTensors& tensors) : tensors_(tensors) {}

  bool has(std::string_view suffix) const { return tensors_.contains(suffix); }

  Result<StoredTensor> get(std::string_view suffix) const {
    const auto found = tensors_.find(suffix);
    if (found != tensors_.end()) return found->second;
    return bad(fmt::format("{} is missing", suffix));
  }

  // [N, K] in the tensor's own terms.
  Result<StoredTensor> matrix(std::string_view suffix) const {
    const StoredTensor tensor = TRY(get(suffix));
    if (tensor.shape.rank() == 2 && tensor.shape[0] > 0 && tensor.shape[1] > 0) return tensor;
    return bad(fmt::format("{} is {} and no matrix", suffix, tensor.shape.to_string()));
  }

  // The bytes of a tensor of one of two formats of T's size, in aligned memory. Extents of one do not count.
  template <class T>
  Result<std::vector<T>> values(std::string_view suffix, StorageFormat format, const Shape& shape,
                                std::optional<StorageFormat> same = {}) const {
    const StoredTensor tensor = TRY(get(suffix));
    TRY(check_shape(suffix, tensor, shape));
    if (tensor.format != format && tensor.format != same) {
      return bad(fmt::format("{} is {} instead of {}", suffix, name(tensor.format), name(format)));
    }
    std::vector<T> values(tensor.bytes.size() / sizeof(T));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  }

  // Real numbers of any format.
  Result<std::vector<float>> floats(std::string_view suffix, const Shape& shape) const {
    const StoredTensor tensor = TRY(get(suffix));
    TRY(check_shape(suffix, tensor, shape));
    std::vector<float> values(static_cast<std::size_t>(tensor.shape.elements()));
    TRY(decode_to_float(tensor, values));
    return values;
  }

 private:
  static std::string_view name(StorageFormat format) { return enum_name(storage_format_names(), format); }

  static Status check_shape(std::string_view suffix, const StoredTensor& tensor, const Shape& shape) {
    const auto without_ones = [](const Shape& of) {
      std::vector<std::int64_t> extents;
      std::ranges::copy_if(of.extents(), std::back_inserter(extents), [](std::int64_t n) { return n != 1; });
      return extents;
    };
    if (without_ones(tensor.shape) == without_ones(shape)) return {};
    return bad(fmt::format("{} is {} instead of {}", suffix, tensor.shape.to_string(), shape.to_string()));
  }

  const ForeignTensors& tensors_;
};

// A group is K / `groups` columns. check_shape() of the format refuses a K that is no multiple of 128.
Status check_group_size(std::int64_t k, std::int64_t groups) {
  if (groups < 1 || k % groups != 0) return bad(fmt::format("{} groups do not divide {} columns", groups, k));
  if (k / groups == formats::kGroup) return {};
  return unexpected(ErrorCode::unsupported,
                    fmt::format("groups of {}: only groups of 128 are served", k / groups), {},
                    "quantize the original model here");
}

Result<ImportedW4> from_qserve(const Slots& slots, const W4Claims& claims) {
  const StoredTensor qweight = TRY(slots.matrix("qweight"));
  const std::int64_t n = qweight.shape[0], k = 2 * qweight.shape[1];
  const bool grouped = slots.has("s2_scales") || slots.has("s2_zeros");
  if (grouped == slots.has("s1_szeros")) {
    return bad(grouped ? "s2_scales and s2_zeros of groups, and s1_szeros of channels"
                       : "neither s2_scales and s2_zeros of groups nor s1_szeros of channels");
  }
  const W4Form form = grouped ? W4Form::per_group : W4Form::per_channel;
  TRY(check_form(claims, form));
  if (!claims.zeros) {
    return unexpected(ErrorCode::invalid_argument, "the tensors do not say what their zeros are", {},
                      "say zeros=pre_scaled (a code times the scale: QServe, LMQuant) or zeros=post_scaled "
                      "(deepcompressor)");
  }
  if (grouped && !claims.order) {
    return unexpected(ErrorCode::invalid_argument, "the tensors do not say in which order the scales of groups lie", {},
                      "say order=quads (QServe's kernels and checkpoints) or order=pairs (deepcompressor's converter "
                      "since February 2025): the wrong one mostly loads and is another model");
  }
  formats::PackedW4 packed;
  packed.form = form;
  packed.n = n;
  packed.k = k;
  packed.qweight =
      TRY(slots.values<std::uint8_t>("qweight", StorageFormat::i8, qweight.shape, StorageFormat::u8));
  packed.s1_scales = TRY(slots.values<Half>("s1_scales", StorageFormat::f16, {n}));
  if (grouped) {
    const StoredTensor scales = TRY(slots.matrix("s2_scales"));
    TRY(check_group_size(k, scales.shape[0]));
    const Shape shape = {k / formats::kGroup, n};
    packed.s2_scales = TRY(slots.values<std::int8_t>("s2_scales", StorageFormat::i8, shape));
    packed.s2_zeros = TRY(slots.values<std::int8_t>("s2_zeros", StorageFormat::i8, shape));
  } else {
    packed.s1_szeros = TRY(slots.values<Half>("s1_szeros", StorageFormat::f16, {n}));
  }
  W4Weight weight =
      TRY(formats::unpack(packed.view(), *claims.zeros, claims.order.value_or(ScaleOrder::quads)));
  return ImportedW4{.weight = std::move(weight)};
}

Result<ImportedW4> from_fake_quant(const Slots& slots, const W4Claims& claims) {
  TRY(check_no_order(claims));
  const StoredTensor matrix = TRY(slots.matrix("weight"));
  const std::int64_t n = matrix.shape[0], k = matrix.shape[1];
  const bool grouped = slots.has("weight.scale.1"), post_scaled = slots.has("weight.scaled_zero");
  if (post_scaled == slots.has("weight.zero")) {
    return bad(post_scaled ? "weight.zero and weight.scaled_zero"
                           : "neither weight.zero nor weight.scaled_zero");
  }
  const ZeroDomain domain = post_scaled ? ZeroDomain::post_scaled : ZeroDomain::pre_scaled;
  TRY(check_form(claims, grouped ? W4Form::per_group : W4Form::per_channel));
  TRY(check_claim(claims.zeros, domain, formats::zero_domain_names(), "zeros"));
  Shape levels = {n};
  if (grouped) {
    const std::int64_t scales = TRY(slots.get("weight.scale.1")).shape.elements();
    if (scales % n != 0) return bad(fmt::format("{} group scales for {} channels", scales, n));
    TRY(check_group_size(k, scales / n));
    levels = {n, k / formats::kGroup};
  }
  const auto weight = TRY(slots.floats("weight", matrix.shape));
  const auto channel_scale = TRY(slots.floats("weight.scale.0", {n}));
  const auto group_scale = grouped ? TRY(slots.floats("weight.scale.1", levels)) : std::vector<float>();
  const auto zero = TRY(slots.floats(post_scaled ? "weight.scaled_zero" : "weight.zero", levels));
  W4Weight recovered = TRY(formats::recover({.form = grouped ? W4Form::per_group : W4Form::per_channel,
                                             .domain = domain,
                                             .n = n,
                                             .k = k,
                                             .weight = weight,
                                             .channel_scale = channel_scale,
                                             .group_scale = group_scale,
                                             .zero = zero}));
  return ImportedW4{.weight = std::move(recovered)};
}

// The codes of compressed-tensors, [N, K] in -8..7, and how many columns there are.
struct Codes {
  std::int64_t n = 0, k = 0;
  std::vector<std::int8_t> q = {};
  bool packed = false;
};

Result<Codes> read_codes(const Slots& slots) {
  Codes codes{.packed = slots.has("weight_packed")};
  if (slots.has("weight_g_idx")) {
    return unexpected(ErrorCode::unsupported,
                      "weight_g_idx: groups that are not runs of columns are not read");
  }
  if (codes.packed == slots.has("weight")) {
    return bad(codes.packed ? "weight and weight_packed" : "neither weight nor weight_packed");
  }
  const StoredTensor matrix = TRY(slots.matrix(codes.packed ? "weight_packed" : "weight"));
  codes.n = matrix.shape[0];
  codes.k = matrix.shape[1];
  if (!codes.packed) {
    codes.q = TRY(slots.values<std::int8_t>("weight", StorageFormat::i8, matrix.shape));
    return codes;
  }
  const auto extents = TRY(slots.floats("weight_shape", {2}));  // exact up to 2²⁴
  codes.k = static_cast<std::int64_t>(std::clamp(extents[1], 0.0f, 0x1p24f));
  if (extents[0] != static_cast<float>(codes.n) || (codes.k + 7) / 8 != matrix.shape[1]) {
    return bad(fmt::format("weight_packed is {}, but weight_shape says [{}, {}]", matrix.shape.to_string(),
                           extents[0], extents[1]));
  }
  const auto words = TRY(slots.values<std::int32_t>("weight_packed", StorageFormat::i32, matrix.shape));
  codes.q = TRY(formats::unpack_words(words, codes.n, codes.k));
  return codes;
}

template <class T>
std::vector<T> transposed(const std::vector<T>& values, std::int64_t rows, std::int64_t columns) {
  std::vector<T> out(values.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < columns; ++i) {
      out[static_cast<std::size_t>(i * rows + row)] = values[static_cast<std::size_t>(row * columns + i)];
    }
  }
  return out;
}

// [N, groups]; empty: symmetric. Packed zeros are packed along N.
Result<std::vector<std::int8_t>> read_zeros(const Slots& slots, const Codes& codes, std::int64_t groups) {
  if (!slots.has("weight_zero_point")) return std::vector<std::int8_t>();
  if (!codes.packed)
    return slots.values<std::int8_t>("weight_zero_point", StorageFormat::i8, {codes.n, groups});
  const std::int64_t rows = (codes.n + 7) / 8;
  const auto words = TRY(slots.values<std::int32_t>("weight_zero_point", StorageFormat::i32, {rows, groups}));
  const auto by_group = TRY(formats::unpack_words(transposed(words, rows, groups), groups, codes.n));
  return transposed(by_group, groups, codes.n);
}

// One scale a channel is the same scale in every group, so that channels are read as groups are.
template <class T>
std::vector<T> repeated(const std::vector<T>& values, std::int64_t times) {
  std::vector<T> out;
  for (const T value : values) out.insert(out.end(), static_cast<std::size_t>(times), value);
  return out;
}

Result<ImportedW4> from_compressed(const Slots& slots, const W4Claims& claims) {
  TRY(check_no_order(claims));
  TRY(check_claim(claims.zeros, ZeroDomain::pre_scaled, formats::zero_domain_names(), "zeros"));
  const Codes codes = TRY(read_codes(slots));
  const StoredTensor scales = TRY(slots.get("weight_scale"));
  const std::int64_t count = scales.shape.elements();
  if (count % codes.n != 0) return bad(fmt::format("{} scales for {} channels", count, codes.n));
  const std::int64_t groups = count / codes.n;
  const bool channels = groups == 1;  // of 128 columns too, which is the same
  TRY(check_claim(claims.form,
                  channels && codes.k != formats::kGroup ? W4Form::per_channel : W4Form::per_group,
                  group_names(), "group"));
  if (!channels) TRY(check_group_size(codes.k, groups));
  auto scale = TRY(slots.floats("weight_scale", {codes.n, groups}));
  auto zero = TRY(read_zeros(slots, codes, groups));
  if (channels) {
    scale = repeated(scale, codes.k / formats::kGroup);
    zero = repeated(zero, codes.k / formats::kGroup);
  }
  const auto inexact = claims.requantize ? formats::Inexact::requantized : formats::Inexact::refused;
  return formats::from_int4_groups({.n = codes.n, .k = codes.k, .q = codes.q, .scale = scale, .zero = zero},
                                   inexact);
}

Status check_sum(const W4Claims& claims, W4Form form) {
  if (!claims.sum) return {};
  if (form == W4Form::per_group) {
    return unexpected(ErrorCode::invalid_argument, "a sum is given, but zeros of groups are multiplied by no sum");
  }
  if (*claims.sum == ZeroSum::codes) return {};
  return unexpected(ErrorCode::unsupported,
                    "sum=inputs: zeros are multiplied by the exact sum of the int8 input; the sum of the input "
                    "before it is quantized would belong to other numbers than the products do, and no kernel has it",
                    {}, "say sum=codes, or nothing: docs/numerics.md says what that changes");
}

Result<ImportedW4> read(ForeignW4 toolkit, const Slots& slots, const W4Claims& claims) {
  switch (toolkit) {
    case ForeignW4::none:
      break;
    case ForeignW4::qserve:
      return from_qserve(slots, claims);
    case ForeignW4::fake_quant:
      return from_fake_quant(slots, claims);
    case ForeignW4::compressed_tensors:
      return from_compressed(slots, claims);
  }
  CHECK(false, "a weight of no toolkit");
}

}  // namespace

Result<W4Claims> parse_w4_claims(std::string_view text) {
  W4Claims claims;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const auto equals = item.find('=');
    const std::string_view key = item.substr(0, equals);
    const std::string_view value = equals == item.npos ? std::string_view() : item.substr(equals + 1);
    if (key == "group") {
      TRY(set_claim(claims.form, group_names(), key, value));
    } else if (key == "zeros") {
      TRY(set_claim(claims.zeros, formats::zero_domain_names(), key, value));
    } else if (key == "order") {
      TRY(set_claim(claims.order, formats::scale_order_names(), key, value));
    } else if (key == "codes") {
      TRY(set_claim(claims.codes, code_set_names(), key, value));
    } else if (key == "sum") {
      TRY(set_claim(claims.sum, zero_sum_names(), key, value));
    } else {
      return unexpected(ErrorCode::invalid_argument, fmt::format("'{}' is not known", key), "w4",
                        "use group=128|channel, zeros=pre_scaled|post_scaled, order=quads|pairs, "
                        "codes=occurring|all, sum=codes");
    }
  }
  return claims;
}

std::string w4_claims_text(const W4Claims& claims) {
  std::vector<std::string> items;
  const auto add = [&](const char* key, const auto& claim, const auto names) {
    if (claim) items.push_back(fmt::format("{}={}", key, enum_name(names, *claim)));
  };
  add("group", claims.form, group_names());
  add("zeros", claims.zeros, formats::zero_domain_names());
  add("order", claims.order, formats::scale_order_names());
  add("codes", claims.codes, code_set_names());
  add("sum", claims.sum, zero_sum_names());
  return fmt::format("{}", fmt::join(items, ","));
}

Result<ImportedW4> foreign_weight(ForeignW4 toolkit, const ForeignTensors& tensors, const W4Claims& claims) {
  ImportedW4 imported = TRY(read(toolkit, Slots(tensors), claims));
  TRY(check_sum(claims, imported.weight.form));
  if (claims.codes == CodeSet::all) TRY(formats::check(imported.weight, CodeSet::all));
  return imported;
}

}  // namespace oasr::load
