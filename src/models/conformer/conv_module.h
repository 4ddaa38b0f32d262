// The Conformer's convolution module: pointwise, gate, depthwise over time, norm, swish, pointwise.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/depthwise_conv1d/op.h"
#include "layers/layer_list.h"
#include "models/conformer/config.h"

namespace oasr::models::conformer {

class ConvModule {
 public:
  static Result<ConvModule> load(const Config& config, const std::string& path,
                                 const layers::Parameters& parameters, const layers::WeightOptions& options);

  std::int64_t taps() const { return depthwise_.taps(); }

  // wide [M, 2 · D] = pointwise_conv1(x), x [M, D].
  void widen(ExecContext& context, const quant::Activation& x, Matrix wide) const;
  // gated [head rows + M, D]: the rows of head, then glu(wide).
  void gate(ExecContext& context, ConstMatrix wide, Matrix gated, ConstMatrix head = {}) const;
  // What the gate gives for a frame of zeros, [1, D]: a causal model pads its input with those.
  void gate_of_zeros(ExecContext& context, Matrix gated) const;
  // y [frames, D], the depthwise convolution of padded [frames + taps - 1, D].
  void convolve(ExecContext& context, ConstMatrix padded, Matrix y) const;
  // Norm and activation of the convolution's rows.
  void activate(ExecContext& context, Matrix y) const;
  // x += pointwise_conv2(y).
  void add(ExecContext& context, const quant::Activation& y, Matrix x) const;

  void list(layers::LayerList& layers);

 private:
  ConvModule(std::string path, layers::Linear pointwise_conv1, layers::Linear pointwise_conv2)
      : path_(std::move(path)),
        depthwise_path_(path_ + ".depthwise_conv"),
        pointwise_conv1_(std::move(pointwise_conv1)),
        pointwise_conv2_(std::move(pointwise_conv2)) {}

  std::string path_, depthwise_path_;
  layers::Linear pointwise_conv1_, pointwise_conv2_;
  kernels::DepthwiseWeight depthwise_;
  Floats depthwise_values_;  // [C, 1, k] as stored, for saving
  Floats bias_;              // [C]
  std::optional<layers::LayerNorm> norm_;  // nothing: batch norm, folded into the depthwise convolution
  kernels::Activation activation_ = kernels::Activation::swish;
};

}  // namespace oasr::models::conformer
