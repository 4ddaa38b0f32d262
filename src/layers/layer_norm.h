// LayerNorm over channels with PyTorch's epsilon.
#pragma once

#include <string>
#include <vector>

#include "device/memory.h"
#include "kernels/linear/activation.h"
#include "layers/parameters.h"
#include "quant/activation.h"
#include "quant/methods/tensor_sources.h"

namespace oasr::layers {

class LayerNorm {
 public:
  static constexpr float kEpsilon = 1e-5f;

  // `<path>.weight` [D] and `<path>.bias` [D].
  static Result<LayerNorm> load(const Parameters& parameters, std::string path);

  void place(Gpu& gpu) {
    gamma_.place(gpu);
    beta_.place(gpu);
  }
  const std::string& path() const { return path_; }

  // x, y [M, D]; y may be x.
  // An activation, if given, is part of the layer's output.
  void forward(ExecContext& context, ConstMatrix x, Matrix y,
               kernels::Activation activation = kernels::Activation::none) const;
  // The output goes to the norm's consumers: as int8 rows with scales when linked, or as floats.
  void forward(ExecContext& context, ConstMatrix x, quant::Activation& y) const;

  // Makes the norm write the int8 input of its consumers, all of which take int8_per_token.
  void link() { emits_int8_ = true; }
  bool linked() const { return emits_int8_; }

  void reserve(ExecContext& context) const;
  std::vector<TensorSource> state() const;

 private:
  std::string path_;
  Floats gamma_, beta_;
  bool emits_int8_ = false;
};

}  // namespace oasr::layers
