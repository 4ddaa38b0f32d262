#include "models/registry.h"

#include "models/conformer/model.h"
#include "models/whisper/config.h"
#include "models/whisper/model.h"

namespace oasr::models {
namespace {

constexpr Architecture kArchitectures[] = {
    {.name = "conformer",
     .what = "WeNet's U2 and U2++ Conformer, CTC with attention rescoring, offline and streaming",
     .gpu = true,
     .detect = conformer::is_conformer,
     .layer_facts = conformer::layer_facts_of,
     .quantization_layout = conformer::layout_of,
     .load = conformer::Model::load},
    {.name = "whisper",
     .what = "OpenAI Whisper, an attention encoder-decoder over 30 s windows",
     .gpu = true,
     .detect = whisper::is_whisper,
     .layer_facts = whisper::layer_facts_of,
     .quantization_layout = whisper::layout_of,
     .load = whisper::Model::load},
};

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

Result<const Architecture*> find_architecture(const Checkpoint& checkpoint) {
  for (const Architecture& row : kArchitectures) {
    if (row.detect(checkpoint)) return &row;
  }
  std::string served;
  for (const Architecture& row : kArchitectures) {
    served += (served.empty() ? "" : ", ") + std::string(row.name);
  }
  return unexpected(ErrorCode::unsupported, "the model is of no architecture that is served",
                    checkpoint.path.string(), "served: " + served);
}

}  // namespace oasr::models
