// Facades over a model that is in memory already.
#pragma once

#include "load/load.h"
#include "oasr/recognizer.h"
#include "oasr/streaming.h"

namespace oasr {

// They share the model, which is that of `config` as it is served; config.model only names it. Where the device of
// `config` is a GPU it is loaded from there instead, since the model in memory is the processor's. Errors: those of
// load().
struct LoadedFacade {
  static Result<Recognizer> recognizer(const load::LoadedModel& loaded, const EngineConfig& config);
  static Result<StreamingRecognizer> streaming(const load::LoadedModel& loaded, const EngineConfig& config,
                                               const TranscribeOptions& options);
};

}  // namespace oasr
