// The tensors of a checkpoint under the names that layers use, checked strictly.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/state_dict.h"
#include "quant/methods/registry.h"
#include "tensor/dtype.h"

namespace oasr::layers {

// One tensor that an architecture expects.
struct ParameterSpec {
  enum class Presence {
    required,
    optional,  // handed to layers when it is there
    zeros,     // may be there but must be all zeros; layers do without it
    ignored,   // may be there, is computed or tied instead
  };
  std::string name;    // as layers ask for it: "model.encoder.conv1.weight"
  Shape shape;
  std::string stored;  // as the container spells it: "encoder/conv1/weight"
  int part = 0;        // the stored tensor stacks `parts` tensors of `shape` along its rows
  int parts = 1;
  Presence presence = Presence::required;
  std::optional<StorageFormat> format = {};  // a quantized layer's: any other is an error
};

class Parameters {
 public:
  // Matches a checkpoint with what is expected. One bad_checkpoint error names every missing, extra
  // and misshapen tensor and every one of another format (the first of each, and how many more). Extents
  // of one are not compared ([512, 1] is [512]). Full precision is never integers.
  static Result<Parameters> match(const StateDict& state, std::span<const ParameterSpec> specs);

  bool has(std::string_view name) const { return tensors_.find(name) != tensors_.end(); }
  // The tensor must be there: match() has seen to it.
  const StoredTensor& get(std::string_view name) const;

  // Called after rows have been read, so that the pages of a mapped file can go. Copies may outlive this.
  using Consumed = std::function<void(std::size_t bytes)>;
  void on_consumed(Consumed callback) { consumed_ = std::move(callback); }
  const Consumed& on_consumed() const { return consumed_; }
  void consumed(std::size_t bytes) const {
    if (consumed_) consumed_(bytes);
  }

 private:
  std::map<std::string, StoredTensor, std::less<>> tensors_;
  Consumed consumed_;
};

// Drops the pages of the state dict's files after every few megabytes that were read. The files stay open as
// long as the parameters or a copy of their callback.
void release_as_consumed(Parameters& parameters, const StateDict& state);

// Rows [first, first + count) of a tensor, borrowed. Blocks never cross rows.
StoredTensor row_range(const StoredTensor& tensor, std::int64_t first, std::int64_t count);

// A whole tensor as float32: a bias, a scale, a table. bad_checkpoint, naming it: a value is NaN or infinite.
Result<std::vector<float>> read_floats(const Parameters& parameters, std::string_view name);

// How the numbers of layers are kept in memory.
struct WeightOptions {
  // Full-precision matrices. Nothing: float16 and bfloat16 stay as they are, everything else becomes
  // float32.
  std::optional<DType> dtype = {};
  // Which layers are quantized, and how; null: none.
  const quant::QuantizationSpec* quantization = nullptr;
  // The checkpoint stores those layers quantized; else they are quantized as they are read.
  bool stored_quantized = false;
  quant::MethodOptions methods = {};
  // Takes every full-precision matrix as the checkpoint has it, whatever `dtype` makes of it; null: nobody asks.
  // The rows are read from the checkpoint's files when they are asked for.
  std::vector<TensorSource>* originals = nullptr;

  // Null: full precision.
  const quant::QuantizedLayer* scheme_of(std::string_view path) const {
    return quantization == nullptr ? nullptr : quantization->find(path);
  }
};

// The tensors that a native checkpoint must have of the quantized layer at `path`, whose weight has the
// shape `weight` and `columns` inputs.
std::vector<ParameterSpec> slot_specs(const std::string& path, const quant::QuantizedLayer& layer,
                                      const Shape& weight, std::int64_t columns);

// The tensors of a quantized layer that a native checkpoint has under `path`.
quant::StoredSlots stored_slots(const Parameters& parameters, const std::string& path,
                                const quant::QuantizedLayer& layer);

// The dtype that a matrix stored as `format` is kept in.
DType storage_dtype(StorageFormat format, const WeightOptions& options);

}  // namespace oasr::layers
