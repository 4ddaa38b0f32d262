// The options of a transcription, checked once: what contradicts or can not be served is refused.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"
#include "models/speech_model.h"
#include "oasr/options.h"

namespace oasr::engine {

// The error of an option.
inline Unexpected refuse(const char* option, std::string what, std::string remedy = {}) {
  return unexpected(ErrorCode::invalid_argument, std::move(what), option, std::move(remedy));
}

// What can be said without a model: ranges, names, contradictions. Errors as below.
Status check_options(const TranscribeOptions& options);

// check_options(), and what the model can not do. An invalid_argument error that names the option and says what to do instead, or success.
Status validate_options(const TranscribeOptions& options, const models::AedModel& model);

}  // namespace oasr::engine
