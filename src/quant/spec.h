// Which layers of a model are quantized, and how: the value that a quantized checkpoint carries.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "quant/scheme.h"

namespace oasr::quant {

// A layer that was selected by kind but did not get the scheme: it is at full precision, or has another one.
struct SkippedLayer {
  std::string path;
  std::string reason;  // "in_features 80 is not a multiple of 16"
  friend bool operator==(const SkippedLayer&, const SkippedLayer&) = default;
};

// How one layer is stored.
struct QuantizedLayer {
  std::string scheme = {};  // "int8_w8a8"
  bool smoothed = false;    // has smooth_inv: the input is multiplied by it before it is quantized
  std::optional<formats::ZeroDomain> zero_domain = {};  // there if the scheme's weights have zeros
  friend bool operator==(const QuantizedLayer&, const QuantizedLayer&) = default;
};

// How layers of a known scheme are stored that are quantized here.
QuantizedLayer quantized_layer(std::string_view scheme, bool smoothed = false);

// Who wrote the spec, and from what.
struct Producer {
  std::string tool;                   // "oasr"
  std::string version;
  std::string recipe;                 // "int8_w8a8_rtn"; "online" when nothing was written
  std::vector<SkippedLayer> skipped;  // in the order of the layers
  std::map<std::string, std::string> options;  // of the recipe, and provenance ("alpha": "0.5")
  friend bool operator==(const Producer&, const Producer&) = default;
};

struct QuantizationSpec {
  std::map<std::string, QuantizedLayer, std::less<>> layers;  // by path
  std::vector<std::string> schemes;       // that it was asked for with; naming one again is a no-op
  std::vector<std::string> ignore;        // globs, as given
  std::vector<std::string> module_types;  // kinds, as resolved; empty: the layers were named
  Producer producer;

  bool empty() const { return layers.empty(); }
  const QuantizedLayer* find(std::string_view path) const;  // null: full precision
  friend bool operator==(const QuantizationSpec&, const QuantizationSpec&) = default;
};

// JSON round trip: from_json(to_json(spec)) == spec. Every key is there, in this order:
//   {"schemes": ["int8_w8a8"], "module_types": ["linear", "pointwise_conv"], "ignore": [],
//    "layers": [{"path": "model.fc1", "scheme": "int8_w8a8", "smoothed": false}],
//    "producer": {"tool": "oasr", "version": "0.1.0", "recipe": "int8_w8a8_rtn",
//                 "skipped": [{"path": "model.fc2", "reason": "…"}], "options": {"alpha": "0.5"}}}
// A layer whose weights have zeros, and no other, has "zero_domain" too ("pre_scaled", "post_scaled").
// Layers are a list so that a path that comes twice can be seen. A key that is unknown or missing,
// a wrong type, an unknown scheme, kind or domain, an empty or repeated path are bad_checkpoint errors
// whose `where` is the key ("quantization.layers[3].scheme").
OrderedJson to_json(const QuantizationSpec& spec);
Result<QuantizationSpec> spec_from_json(const Json& json);

}  // namespace oasr::quant
