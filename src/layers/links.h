// Which layers hand each other 8-bit rows: derived from the model's layout after its layers are bound.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "layers/layer_list.h"
#include "quant/layout.h"

namespace oasr::layers {

// A producer that quantizes the input of a consumer.
struct Link {
  std::string producer, consumer;  // paths
};

// False when OASR_QUANT_FUSION=0 disarms all links; an error for another value than 0 and 1.
Result<bool> quantization_fusion();

// Arms the links that the layout declares and the methods allow:
//   norm -> products   every consumer takes int8 rows with a scale each, without a smoother
//   product -> product the consumer has a static input scale and both are int8
// A fused producer writes the bits that the consumer's own quantization would. OASR_QUANT_FUSION=0
// disarms all of them (then nothing is returned); any other value but 1 is an error. A layout that
// names a layer the model has not is a bug.
Result<std::vector<Link>> link(const quant::QuantLayout& layout, const LayerList& layers);

}  // namespace oasr::layers
