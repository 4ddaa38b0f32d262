// A model that measures its own encoder and decoder calls.
#pragma once

#include <memory>

#include "device/gpu.h"
#include "models/speech_model.h"
#include "oasr/recognizer.h"

namespace oasr {

// Since the GPU (null: there is none) was opened.
Launches launches_of(const Gpu* gpu);

// `model` behind the same interface; the states that it makes add to `timings`, which must outlive
// them. One state at a time.
std::shared_ptr<const models::AedModel> timed_model(std::shared_ptr<const models::AedModel> model,
                                                    std::shared_ptr<Timings> timings);

}  // namespace oasr
