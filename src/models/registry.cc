#include "models/registry.h"

#include "base/json.h"
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

// What the checkpoint calls its architecture; empty: nothing.
std::string own_name(const Checkpoint& checkpoint) {
  if (!checkpoint.architecture.empty()) return checkpoint.architecture;
  const auto config = checkpoint.documents.find("config.json");
  if (config == checkpoint.documents.end()) return {};
  const auto json = parse_json(config->second, "config.json");
  if (!json || !json->is_object()) return {};
  const Json type = json->value("model_type", Json());
  return type.is_string() ? type.get<std::string>() : std::string();
}

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
  const std::string name = own_name(checkpoint);
  return unexpected(ErrorCode::unsupported,
                    "the model is of no architecture that is served" +
                        (name.empty() ? std::string() : ": it calls itself \"" + name + "\""),
                    checkpoint.path.string(), "served: " + served);
}

}  // namespace oasr::models
