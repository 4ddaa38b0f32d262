// From the facade's strings to what load/ takes.
#pragma once

#include <string>
#include <vector>

#include "load/load.h"

namespace oasr {

// Errors name the option: invalid_argument, or what quant::add_option() says.
Result<load::LoadOptions> load_options(const std::string& dtype, const std::string& quantization,
                                       const std::vector<std::string>& quantization_options);

// 1 to 64 windows decoded together.
Status check_batch_size(int batch_size);

// The path of a checkpoint; a catalogue name that is not cached is pulled if `download` allows.
Result<std::string> locate_model(const std::string& model, bool download);

}  // namespace oasr
