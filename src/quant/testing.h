// For tests: a model that has every kind of layer, and some of each that no kernel can serve.
#pragma once

#include <vector>

#include "quant/selection.h"

namespace oasr::quant {

inline std::vector<LayerFacts> small_model() {
  const auto layer = [](const char* path, QuantKind kind, int in, int out, int groups = 1,
                        const char* not_quantizable = "") {
    return LayerFacts{.path = path,
                      .kind = kind,
                      .in_features = in,
                      .out_features = out,
                      .groups = groups,
                      .not_quantizable = not_quantizable};
  };
  return {layer("encoder.convs.0", QuantKind::conv2d, 1, 256),
          layer("encoder.convs.1", QuantKind::conv2d, 256, 256),
          layer("encoder.conv1", QuantKind::conv1d, 80, 384),
          layer("encoder.layers.0.fc1", QuantKind::linear, 384, 1536),
          layer("encoder.layers.0.fc2", QuantKind::linear, 1536, 384),
          layer("encoder.layers.0.pointwise", QuantKind::pointwise_conv, 384, 768),
          layer("encoder.layers.0.depthwise", QuantKind::conv1d, 384, 384, 384),
          layer("encoder.odd", QuantKind::linear, 81, 5002),
          layer("decoder.layers.0.fc1", QuantKind::linear, 384, 1536),
          layer("decoder.head", QuantKind::linear, 384, 51864, 1,
                "its weight is the token embedding's")};
}

}  // namespace oasr::quant
