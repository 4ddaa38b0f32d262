// What is served: every layer's scheme, kernel, and who quantizes its input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "layers/links.h"
#include "models/speech_model.h"
#include "quant/selection.h"

namespace oasr::load {

// One layer that holds a matrix.
struct LayerReport {
  std::string path;
  std::string kind;         // "linear"
  std::string scheme;       // "int8_w8a8"; empty: full precision
  std::string storage;      // "int8", "int4 g128", "float16"
  std::string zero_domain;  // "post_scaled"; empty: weights have no zeros
  std::string kernel;       // "scaled_mm avx512_vnni"
  std::string operands;     // that it multiplies: "int8"
  bool reference = false;   // bound to the definition's plain loops
  std::string input;        // quantized layers: the path that quantizes the input, or "itself"
  std::int64_t in_features = 0, out_features = 0;
  std::int64_t taps = 1;    // of a convolution
  std::int64_t weight_bytes = 0;
  std::string reason;       // that it has not the scheme that its kind was selected for
};

struct QuantizationReport {
  std::vector<std::string> schemes;  // served, none: full precision
  std::vector<LayerReport> layers;   // in the order of the model's table
  std::int64_t quantized = 0;        // layers with a scheme that run on a real kernel
  std::int64_t reference = 0;        // layers with a scheme that run on the reference
  std::int64_t weight_bytes = 0;     // of all layers, as served
  std::int64_t full_precision_bytes = 0;  // the same with every matrix in the dtype of the others
  std::string arithmetic = "float32";  // of what has no scheme
  std::string kv_format;             // "float16"
  std::string producer;              // "oasr 0.1.0, int8_w8a8_rtn"
  std::vector<std::string> notes;
};

// The recipe of a producer that took 4-bit weights of another toolkit: this and the toolkit's name.
inline constexpr std::string_view kImportRecipe = "import_";

QuantizationReport make_report(const models::SpeechModel& model,
                               std::span<const quant::LayerFacts> facts,
                               const quant::QuantizationSpec& spec,
                               std::span<const layers::Link> links, const ExecContext& context);

OrderedJson to_json(const QuantizationReport& report);
// A summary of a few lines, and a table of all layers when `layers` is set.
std::string to_text(const QuantizationReport& report, bool layers);

}  // namespace oasr::load
