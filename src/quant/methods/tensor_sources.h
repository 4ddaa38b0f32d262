// Tensors of a state dict that layers and methods hold in memory.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "checkpoint/safetensors_writer.h"

namespace oasr::quant {

// float32 values, borrowed: they must outlive the source.
TensorSource float_source(std::string name, const Shape& shape, std::span<const float> values);

// Adds `path`.bias; nothing for an empty one.
void add_bias(const std::string& path, std::span<const float> bias, std::vector<TensorSource>& out);

}  // namespace oasr::quant
