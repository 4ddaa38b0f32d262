// 4-bit weights as other toolkits store them: whose they are, and the tensors of each layer. What the numbers
// mean is load/foreign_weight.h's.
#pragma once

#include <map>
#include <string>

#include "base/enum_table.h"
#include "checkpoint/checkpoint.h"

namespace oasr {

enum class ForeignW4 : std::uint8_t {
  none,
  qserve,              // packed: qweight, s1_scales, s2_scales and s2_zeros, or s1_szeros
  fake_quant,          // weights that were multiplied out again, beside their scales (model.pt, scale.pt)
  compressed_tensors,  // int4 groups with free scales, int8 activations of a scale a token
};
std::span<const EnumName<ForeignW4>> foreign_w4_names();

// A document beside QServe's tensors that says what they do not.
inline constexpr const char* kQServeDocument = "qserve.json";

// The tensors of a layer by what stands behind its path: "qweight", "weight.scale.0".
using ForeignTensors = std::map<std::string, StoredTensor, std::less<>>;

// Whose 4-bit weights a checkpoint has; none also for one of our own. unsupported, with the reason: weights
// that are made for other activations than int8 with a scale a token (ModelOpt's W4A8_AWQ), and other forms
// of a toolkit that is read.
Result<ForeignW4> foreign_w4(const Checkpoint& checkpoint);

// Moves the tensors of all layers that `toolkit` quantized out of the state dict; the bytes stay where they
// are.
std::map<std::string, ForeignTensors, std::less<>> take_foreign_layers(StateDict& state, ForeignW4 toolkit);

}  // namespace oasr
