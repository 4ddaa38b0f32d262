// The error of a recording that a model computed NaN or infinity for.
#pragma once

#include "base/result.h"
#include "models/speech_model.h"

namespace oasr::engine {

Error fault_error(const models::Fault& fault);

}  // namespace oasr::engine
