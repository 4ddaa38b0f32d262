// The rows of a manifest of recordings with transcripts.
#pragma once

#include <string>
#include <string_view>

#include "oasr/eval.h"

namespace oasr::eval {

// What to do with a reference that has no text.
enum class EmptyReference { refuse, skip, score, ignore };  // ignore: texts are not needed
Result<EmptyReference> parse_empty_reference(const std::string& name);

struct ManifestOptions {
  EmptyReference empty = EmptyReference::refuse;
  std::string audio_root;  // what paths of audio are relative to; empty: the manifest's folder
};

// Rows of the manifest `text`, whose name is `path`, are added to `inputs`. Errors as
// read_eval_manifests.
Status parse_manifest(std::string_view text, const std::string& path, const ManifestOptions& options,
                      EvalInputs& inputs);

}  // namespace oasr::eval
