// For tests: int8 networks of random numbers, quantized online or as a calibrated checkpoint has them.
#pragma once

#include <memory>
#include <string>

#include "models/whisper/layer_table.h"
#include "models/whisper/test_support.h"
#include "quant/methods/testing.h"

namespace oasr::models::whisper {

inline std::shared_ptr<const Network> online_int8(const RandomCheckpoint& random,
                                                  kernels::ScaledMMBackend backend) {
  const auto spec =
      quant::select({.scheme = "int8_w8a8"}, layer_facts(random.config), quant::Origin::online).value();
  return Network::load(
             random.config, random.checkpoint,
             {.quantization = &spec, .methods = {.scaled_mm = &kernels::scaled_mm_implementation(backend)}})
      .value();
}

// How a fused recipe stores a layer: convolutions, fc2 and the cross-attention projection at a static
// scale, output projections smoothed, the rest with a scale a token.
inline quant::QuantizedLayer calibrated_layer(const quant::LayerFacts& facts) {
  const bool fixed = facts.kind == quant::QuantKind::conv1d || facts.path.ends_with(".fc2") ||
                     facts.path.ends_with(".kv_proj");
  return {.scheme = fixed ? "int8_w8a8_static" : "int8_w8a8",
          .smoothed = facts.path.ends_with("conv1") || facts.path.ends_with("out_proj") ||
                      facts.path.ends_with("encoder.layers.1.fc2")};
}

// The tensors of a native checkpoint by name.
struct NativeTensors {
  quant::QuantizationSpec spec;
  quant::OwnedSlots tensors;

  // Takes over what a source writes.
  void keep(const TensorSource& source) {
    tensors.add(source.name, source.format, source.shape, quant::written(source));
  }
  // Writes the layer at `path` in int8 instead; its weight and bias are kept.
  void quantize(const quant::LayerFacts& facts, unsigned seed) {
    const quant::QuantizedLayer layer = calibrated_layer(facts);
    spec.layers[facts.path] = layer;
    const StoredTensor plain = tensors.slots.at(facts.path + ".weight");
    const auto values = quant::floats_in(plain);
    Shape shape = plain.shape;
    if (shape.rank() == 3) shape = {shape[0], shape[2], shape[1]};  // taps before channels
    const std::int64_t n = shape[0], k = plain.shape.elements() / n;
    const auto storage =
        quant::quantize_weight(detected_isa(), {.n = n,
                                .k = k,
                                .rows =
                                    [&](std::int64_t row, std::span<float> out) {
                                      const float* from = values.data() + row * k;
                                      if (shape.rank() == 2) std::copy_n(from, k, out.begin());
                                      for (std::int64_t i = 0; shape.rank() == 3 && i < k; ++i) {
                                        out[static_cast<std::size_t>(i)] =
                                            from[(i % shape[2]) * shape[1] + i / shape[2]];
                                      }
                                    }})
            .value();
    const auto add = [&](const char* suffix, StorageFormat format, const Shape& extents,
                         const auto& numbers) {
      tensors.add(facts.path + suffix, format, extents, quant::bytes_of(numbers));
    };
    add(".weight", StorageFormat::i8, shape, storage.weight);
    add(".weight_scale", StorageFormat::f32, {n}, storage.weight_scale);
    const std::int64_t inputs = shape[shape.rank() - 1];
    if (layer.smoothed) {
      auto smooth = kernels::random_floats(inputs, seed, 0.2f);
      for (float& value : smooth) value = 1 + std::abs(value);
      add(".smooth_inv", StorageFormat::f32, {inputs}, smooth);
    }
    if (layer.scheme == "int8_w8a8_static") {
      add(".input_scale", StorageFormat::f32, {1},
          std::vector<float>{0.03f + 0.001f * static_cast<float>(seed % 7)});
    }
  }
  // As sources for a writer; they borrow from this.
  std::vector<TensorSource> sources() const {
    std::vector<TensorSource> all;
    for (const auto& [name, tensor] : tensors.slots) {
      const std::size_t rows = tensor.shape.rank() < 2 ? 1 : static_cast<std::size_t>(tensor.shape[0]);
      all.push_back({.name = name, .format = tensor.format, .shape = tensor.shape,
                     .row = [tensor, rows](std::int64_t row, std::span<std::byte> out) {
                       const std::size_t size = tensor.bytes.size() / rows;
                       std::ranges::copy(tensor.bytes.subspan(static_cast<std::size_t>(row) * size, size),
                                         out.begin());
                     }});
    }
    return all;
  }
};

// What a calibrating recipe would have written of a random checkpoint: all layers in int8.
inline NativeTensors calibrated_tensors(const RandomCheckpoint& random) {
  NativeTensors native;
  const auto network = random.network();
  for (const TensorSource& source : network->layers.state()) native.keep(source);
  unsigned seed = 1;
  for (const quant::LayerFacts& facts : layer_facts(random.config)) {
    if (facts.not_quantizable.empty()) native.quantize(facts, seed++);
  }
  native.spec.schemes = {"int8_w8a8", "int8_w8a8_static"};
  native.spec.module_types = {"linear", "conv1d"};
  native.spec.producer = {.tool = "oasr", .version = "0", .recipe = "a_test", .skipped = {}, .options = {}};
  return native;
}

inline std::shared_ptr<const Network> calibrated_network(const RandomCheckpoint& random,
                                                         kernels::ScaledMMBackend backend) {
  const NativeTensors native = calibrated_tensors(random);
  Checkpoint checkpoint;
  checkpoint.container = "native";
  for (const auto& [name, tensor] : native.tensors.slots) checkpoint.tensors.tensors[name] = tensor;
  return Network::load(random.config, checkpoint,
                       {.quantization = &native.spec,
                        .stored_quantized = true,
                        .methods = {.scaled_mm = &kernels::scaled_mm_implementation(backend)}})
      .value();
}

inline std::shared_ptr<const Network> calibrated_network(const Config& config, kernels::ScaledMMBackend backend) {
  return calibrated_network(RandomCheckpoint(config), backend);
}

}  // namespace oasr::models::whisper
