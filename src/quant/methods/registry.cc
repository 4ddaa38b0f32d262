#include "quant/methods/registry.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "quant/methods/w4a8_linear.h"

namespace oasr::quant {
namespace {

using Extent = StorageSlot::Extent;

constexpr std::string_view kSmoothInv = "smooth_inv", kInputScale = "input_scale";

constexpr StorageSlot kInt8[] = {
    {"weight", StorageFormat::i8, Extent::weight},
    {"weight_scale", StorageFormat::f32, Extent::rows},
    {kSmoothInv, StorageFormat::f32, Extent::columns},
};
constexpr StorageSlot kInt8Static[] = {
    {"weight", StorageFormat::i8, Extent::weight},
    {"weight_scale", StorageFormat::f32, Extent::rows},
    {kSmoothInv, StorageFormat::f32, Extent::columns},
    {kInputScale, StorageFormat::f32, Extent::one},
};

constexpr StorageSlot kW4Groups[] = {
    {"qweight", StorageFormat::i8, Extent::codes},
    {"s1_scales", StorageFormat::f16, Extent::rows},
    {"s2_scales", StorageFormat::i8, Extent::groups},
    {"s2_zeros", StorageFormat::i8, Extent::groups},
    {kSmoothInv, StorageFormat::f32, Extent::columns},
};
constexpr StorageSlot kW4Channels[] = {
    {"qweight", StorageFormat::i8, Extent::codes},
    {"s1_scales", StorageFormat::f16, Extent::rows},
    {"s1_szeros", StorageFormat::f16, Extent::rows},
    {kSmoothInv, StorageFormat::f32, Extent::columns},
};

// float32 values that are finite and, if `positive`, above zero; else not negative.
Result<std::vector<float>> read_scales(const StoredSlots& slots, std::string_view suffix,
                                       bool positive) {
  const auto found = slots.find(suffix);
  if (found == slots.end()) return std::vector<float>();
  std::vector<float> values(static_cast<std::size_t>(found->second.shape.elements()));
  TRY(decode_to_float(found->second, values));
  const bool good = std::ranges::all_of(values, [&](float v) {
    return std::isfinite(v) && (positive ? v > 0 : v >= 0);
  });
  if (good) return values;
  return unexpected(ErrorCode::bad_checkpoint,
                    std::string(suffix) + " holds a value that is not a scale" +
                        (positive ? " (finite, above zero)" : " (finite, not negative)"));
}

Result<Int8Storage> read_storage(const StoredSlots& slots) {
  Int8Storage storage;
  const auto bytes = slots.at("weight").bytes;
  storage.weight.resize(bytes.size());
  std::memcpy(storage.weight.data(), bytes.data(), bytes.size());
  storage.weight_scale = TRY(read_scales(slots, "weight_scale", false));
  storage.smooth_inv = TRY(read_scales(slots, kSmoothInv, true));
  const auto input_scale = TRY(read_scales(slots, kInputScale, true));
  if (!input_scale.empty()) storage.input_scale = input_scale[0];
  return storage;
}

Result<LinearMethodPtr> int8_from_floats(const LinearSource& source, const MethodOptions& options) {
  TRY(check_product(*options.scaled_mm, source.n, source.k));
  const Int8Storage storage = TRY(quantize_weight(options.isa, source));
  return LinearMethodPtr(std::make_unique<Int8Linear>(source.n, source.k, storage, source.bias,
                                                      source.activation, *options.scaled_mm));
}

Result<QuantizedTensors> quantize_int8(const WeightSource& weight, const Calibration& calibration,
                                       const MethodOptions& options) {
  const std::int64_t n = weight.shape[0], k = weight.shape.elements() / n;
  const Int8Storage storage = TRY(quantize_weight(options.isa, {.n = n, .k = k, .rows = weight.rows}));
  QuantizedTensors tensors;
  const auto add = [&](std::string_view suffix, StorageFormat format, const Shape& shape, auto values) {
    tensors.add(std::string(suffix), format, shape, std::as_bytes(values));
  };
  add("weight", StorageFormat::i8, weight.shape, std::span(storage.weight));
  add("weight_scale", StorageFormat::f32, {n}, std::span(storage.weight_scale));
  if (!calibration.smooth_inv.empty()) {
    add(kSmoothInv, StorageFormat::f32, {weight.shape[weight.shape.rank() - 1]}, std::span(calibration.smooth_inv));
  }
  if (calibration.input_scale) {
    add(kInputScale, StorageFormat::f32, {1}, std::span(&*calibration.input_scale, 1));
  }
  return tensors;
}

Result<LinearMethodPtr> int8_from_slots(const QuantizedLayer&, const StoredSlots& slots,
                                        std::vector<float> bias, kernels::Activation activation,
                                        const MethodOptions& options) {
  const Int8Storage storage = TRY(read_storage(slots));
  const Shape& shape = slots.at("weight").shape;
  TRY(check_product(*options.scaled_mm, shape[0], shape[1]));
  return LinearMethodPtr(std::make_unique<Int8Linear>(shape[0], shape[1], storage, std::move(bias),
                                                      activation, *options.scaled_mm));
}

Result<Conv1dMethodPtr> int8_conv1d_from_slots(const StoredSlots& slots, ConvSource source,
                                               const MethodOptions& options) {
  TRY(check_product(*options.scaled_mm, source.c_out, kernels::kConvTaps * source.c_in));
  const Int8Storage storage = TRY(read_storage(slots));
  return Conv1dMethodPtr(std::make_unique<Int8Conv1d>(source.c_out, source.c_in, storage,
                                                      std::move(source.bias), source.stride,
                                                      source.activation, *options.scaled_mm));
}

Result<Conv2dMethodPtr> int8_conv2d_from_slots(const StoredSlots& slots, const Conv2dShape& shape,
                                               std::vector<float> bias, const MethodOptions& options) {
  if (shape.taps() * shape.c_in > kernels::PackedInt8Weight::kGreatestK) {
    return unexpected(ErrorCode::unsupported, "the sum over " + std::to_string(shape.taps()) + " taps of " +
                                                  std::to_string(shape.c_in) + " channels may not fit in int32");
  }
  TRY(check_product(*options.scaled_mm, shape.c_out, shape.taps() * shape.c_in));
  const Int8Storage storage = TRY(read_storage(slots));
  return Conv2dMethodPtr(std::make_unique<Int8Conv2d>(shape, storage, std::move(bias), *options.scaled_mm));
}

const kernels::Int4MMImplementation& int4_kernels(const MethodOptions& options) {
  return kernels::int4_mm_implementation(options.scaled_mm->backend);
}

template <formats::W4Form form>
Result<LinearMethodPtr> w4_from_floats(const LinearSource& source, const MethodOptions& options) {
  const formats::W4Weight weight = TRY(encode_w4(form, source.n, source.k, source.rows, {}, options.pool));
  return LinearMethodPtr(std::make_unique<W4A8Linear>(weight, std::vector<float>(), source.bias,
                                                      source.activation, int4_kernels(options)));
}

template <formats::W4Form form>
Result<LinearMethodPtr> w4_from_slots(const QuantizedLayer& layer, const StoredSlots& slots,
                                      std::vector<float> bias, kernels::Activation activation,
                                      const MethodOptions& options) {
  CHECK(layer.zero_domain.has_value(), "4-bit weights have zeros");
  const formats::W4Weight weight = TRY(read_w4(form, *layer.zero_domain, slots));
  auto smooth_inv = TRY(read_scales(slots, kSmoothInv, true));
  return LinearMethodPtr(std::make_unique<W4A8Linear>(weight, std::move(smooth_inv), std::move(bias), activation,
                                                      int4_kernels(options)));
}

template <formats::W4Form form>
Result<QuantizedTensors> quantize_w4(const WeightSource& weight, const Calibration& calibration,
                                     const MethodOptions& options) {
  CHECK(!calibration.input_scale, "no 4-bit scheme is static");
  const formats::W4Weight encoded =
      TRY(encode_w4(form, weight.shape[0], weight.shape[1], weight.rows, calibration.importance, options.pool));
  return stored_w4(encoded, calibration.smooth_inv);
}

constexpr QuantMethod kMethods[] = {
    {.scheme = "int8_w8a8",
     .channel_scale = "weight_scale",
     .from_floats = int8_from_floats,
     .from_slots = int8_from_slots,
     .conv1d_from_slots = nullptr,
     .conv2d_from_slots = nullptr,
     .quantize = quantize_int8,
     .slots = kInt8,
     .gpu = true},
    {.scheme = "int8_w8a8_static",
     .channel_scale = "weight_scale",
     .from_floats = nullptr,
     .from_slots = int8_from_slots,
     .conv1d_from_slots = int8_conv1d_from_slots,
     .conv2d_from_slots = int8_conv2d_from_slots,
     .quantize = quantize_int8,
     .slots = kInt8Static,
     .gpu = true},
    {.scheme = "w4a8_g128",
     .channel_scale = "s1_scales",
     .from_floats = w4_from_floats<formats::W4Form::per_group>,
     .from_slots = w4_from_slots<formats::W4Form::per_group>,
     .conv1d_from_slots = nullptr,
     .conv2d_from_slots = nullptr,
     .quantize = quantize_w4<formats::W4Form::per_group>,
     .slots = kW4Groups,
     .gpu = false},
    {.scheme = "w4a8_chn",
     .channel_scale = "s1_scales",
     .from_floats = w4_from_floats<formats::W4Form::per_channel>,
     .from_slots = w4_from_slots<formats::W4Form::per_channel>,
     .conv1d_from_slots = nullptr,
     .conv2d_from_slots = nullptr,
     .quantize = quantize_w4<formats::W4Form::per_channel>,
     .slots = kW4Channels,
     .gpu = false},
};

}  // namespace

std::span<const QuantMethod> quant_methods() { return kMethods; }

const QuantMethod& quant_method(std::string_view scheme) {
  const auto found = std::ranges::find(kMethods, scheme, &QuantMethod::scheme);
  CHECK(found != std::end(kMethods), "a served scheme without a method");
  return *found;
}

Shape slot_shape(const StorageSlot& slot, const Shape& weight, std::int64_t columns) {
  switch (slot.extent) {
    case Extent::weight: return weight;
    case Extent::rows: return {weight[0]};
    case Extent::columns: return {columns};
    case Extent::one: return {1};
    case Extent::codes: return {weight[0], weight[1] / 2};
    case Extent::groups: return {weight[1] / formats::kGroup, weight[0]};
  }
  CHECK(false, "a slot without an extent");
}

std::vector<StorageSlot> storage_slots(const QuantizedLayer& layer) {
  std::vector<StorageSlot> slots;
  for (const StorageSlot& slot : quant_method(layer.scheme).slots) {
    if (slot.suffix != kSmoothInv || layer.smoothed) slots.push_back(slot);
  }
  return slots;
}

}  // namespace oasr::quant
