// The JSON form of a transcript.
#pragma once

#include "base/json.h"
#include "oasr/outputs.h"

namespace oasr::outputs {

OrderedJson to_json(const Transcript& transcript, const OutputContext& context);

}  // namespace oasr::outputs
