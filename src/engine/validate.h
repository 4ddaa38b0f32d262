// The options of a transcription, checked once: what contradicts or can not be served is refused.
#pragma once

#include "base/result.h"
#include "models/speech_model.h"
#include "oasr/options.h"

namespace oasr::engine {

// What can be said without a model: ranges, names, contradictions. Errors as below.
Status check_options(const TranscribeOptions& options);

// check_options(), and what the model can not do. An invalid_argument error that names the option and says what to do instead, or success.
Status validate_options(const TranscribeOptions& options, const models::AedModel& model);

}  // namespace oasr::engine
