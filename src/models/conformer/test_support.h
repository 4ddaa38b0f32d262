// A random WeNet checkpoint in memory, for tests.
#pragma once

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "models/conformer/config.h"
#include "models/conformer/weight_table.h"

namespace oasr::models::conformer {

// A train.yaml, as the checkpoint reader hands it on, of a small U2++ with 24 units.
inline std::string small_train_yaml(const std::string& encoder = {}, const std::string& decoder = "bitransformer") {
  return R"({"encoder": "conformer", "encoder_conf": {"output_size": 32, "num_blocks": 2, "attention_heads": 4,)"
         R"("linear_units": 48, "cnn_module_kernel": 7, "causal": true, "cnn_module_norm": "layer_norm")" +
         (encoder.empty() ? "" : "," + encoder) + R"(}, "decoder": ")" + decoder +
         R"(", "decoder_conf": {"num_blocks": 1, "r_num_blocks": 1, "attention_heads": 4, "linear_units": 48},)"
         R"("model_conf": {"reverse_weight": )" + (decoder == "bitransformer" ? "0.3" : "0") +
         R"(}, "input_dim": 80, "output_dim": 24})";
}

// Weights are uniform in ±1 / sqrt(columns), norms near 1.
inline Checkpoint random_checkpoint(const std::string& train_yaml) {
  Checkpoint checkpoint;
  checkpoint.container = "wenet";
  checkpoint.path = "random";
  checkpoint.documents["train.yaml"] = train_yaml;
  const Config config = read_config(checkpoint).value();
  checkpoint.tokenizer.kind = "units";
  for (int id = 0; id < config.output_dim; ++id) {
    const std::string name = id == 0 ? "<blank>" : id == 1 ? "<unk>" : id == config.output_dim - 1 ? "<sos/eos>"
                                                               : std::string(1, static_cast<char>('A' + id - 2));
    checkpoint.tokenizer.units_txt += name + " " + std::to_string(id) + "\n";
  }
  std::uint32_t random = 12345;
  const auto uniform = [&] {
    random = random * 1664525u + 1013904223u;
    return static_cast<float>(random >> 8) * 0x1p-23f - 1.0f;
  };
  for (const layers::ParameterSpec& spec : wenet_table(config)) {
    if (spec.presence == layers::ParameterSpec::Presence::optional) continue;
    auto values = std::make_shared<std::vector<float>>(static_cast<std::size_t>(spec.shape.elements()));
    const bool norm = spec.shape.rank() == 1 && (spec.stored.ends_with(".weight") || spec.stored.ends_with("running_var"));
    const auto columns = static_cast<float>(spec.shape.elements() / spec.shape[0]);
    for (float& value : *values) value = norm ? 1.0f + 0.2f * uniform() : uniform() / std::sqrt(columns);
    checkpoint.tensors.tensors[spec.stored] = {.format = StorageFormat::f32,
                                               .shape = spec.shape,
                                               .bytes = std::as_bytes(std::span(*values)),
                                               .row_scale = {}};
    checkpoint.tensors.owners.push_back(std::move(values));
  }
  return checkpoint;
}

}  // namespace oasr::models::conformer
