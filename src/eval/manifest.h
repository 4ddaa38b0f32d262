// The rows of a manifest of recordings with transcripts.
#pragma once

#include <string_view>

#include "oasr/eval.h"

namespace oasr::eval {

// What to do with a reference that has no text.
enum class EmptyReference { refuse, skip, score };
Result<EmptyReference> parse_empty_reference(const std::string& name);

// Rows of the manifest `text`, whose name is `path`, are added to `inputs`. Errors as
// read_eval_manifests.
Status parse_manifest(std::string_view text, const std::string& path, EmptyReference empty,
                      EvalInputs& inputs);

}  // namespace oasr::eval
