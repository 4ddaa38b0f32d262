// Which language is spoken in a window.
#pragma once

#include <string>

#include "models/speech_model.h"

namespace oasr::engine {

struct DetectedLanguage {
  std::string code;
  double probability = 0;  // among all languages of the model
};

// One decoder step after <|startoftranscript|> on an encoded window of a multilingual model. Opens
// and closes a row.
DetectedLanguage detect_language(models::AedState& state, models::WindowId window,
                                 const models::AedModel& model);

}  // namespace oasr::engine
