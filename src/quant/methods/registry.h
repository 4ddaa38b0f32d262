// The table of methods: which code stores and multiplies the layers of a scheme.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "quant/methods/conv1d_method.h"
#include "quant/methods/conv2d_method.h"
#include "quant/methods/quantized_tensors.h"
#include "quant/spec.h"

namespace oasr::quant {

// One tensor of a quantized layer's state dict (the names follow compressed-tensors).
struct StorageSlot {
  // Its shape, in the weight's terms: [N, K] is `weight`, and of 4-bit weights `codes` are [N, K / 2] and
  // `groups` [K / 128, N].
  enum class Extent : std::uint8_t { weight, rows, columns, one, codes, groups };
  std::string_view suffix;  // "weight_scale"
  StorageFormat format;
  Extent extent;
};
// Of a weight with `columns` inputs.
Shape slot_shape(const StorageSlot& slot, const Shape& weight, std::int64_t columns);

// How layers are made.
struct MethodOptions {
  const kernels::ScaledMMImplementation* scaled_mm = nullptr;
  Isa isa = Isa::scalar;  // that quantizes weights; every one gives the same bits
  ThreadPool* pool = nullptr;  // that encodes 4-bit weights; null: the caller's thread
};

// What a convolution is beside its numbers.
struct ConvSource {
  std::int64_t c_out = 0, c_in = 0, stride = 1;
  std::vector<float> bias;  // [C_out]
  kernels::Activation activation = kernels::Activation::none;
};

using LinearMethodPtr = std::unique_ptr<LinearMethod>;
using Conv1dMethodPtr = std::unique_ptr<Conv1dMethod>;
using Conv2dMethodPtr = std::unique_ptr<Conv2dMethod>;

// A row of the table.
struct QuantMethod {
  std::string_view scheme;  // of scheme.h
  std::string_view channel_scale;  // the slot with a scale an output channel
  // Round to nearest from float32 rows; null: the scheme needs calibration.
  Result<LinearMethodPtr> (*from_floats)(const LinearSource& source, const MethodOptions& options);
  // From stored tensors, which `layer` describes. Errors: bad_checkpoint for a value that no method writes (a
  // scale that is NaN, infinite or of the wrong sign).
  Result<LinearMethodPtr> (*from_slots)(const QuantizedLayer& layer, const StoredSlots& slots,
                                        std::vector<float> bias, kernels::Activation activation,
                                        const MethodOptions& options);
  Result<Conv1dMethodPtr> (*conv1d_from_slots)(const StoredSlots& slots, ConvSource source,
                                               const MethodOptions& options);  // null: none
  Result<Conv2dMethodPtr> (*conv2d_from_slots)(const StoredSlots& slots, const Conv2dShape& shape,
                                               std::vector<float> bias, const MethodOptions& options);  // null: none
  // Round to nearest, as it is stored: what from_slots takes with quantized_layer(scheme).
  // calibration.input_scale is there for a static scheme. bad_checkpoint: a weight that is not finite.
  Result<QuantizedTensors> (*quantize)(const WeightSource& weight, const Calibration& calibration,
                                       const MethodOptions& options);
  std::span<const StorageSlot> slots;  // smooth_inv only for layers that have it
  bool gpu;  // whether its products have kernels for GPUs
};
std::span<const QuantMethod> quant_methods();

// The method of a scheme that find_scheme() serves.
const QuantMethod& quant_method(std::string_view scheme);

// The tensors of a layer, in the order of the table.
std::vector<StorageSlot> storage_slots(const QuantizedLayer& layer);

}  // namespace oasr::quant
