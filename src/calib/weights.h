// The tensors of a full-precision model as its checkpoint has them, row by row.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "calib/folds.h"
#include "layers/layer_list.h"
#include "quant/methods/quantized_tensors.h"
#include "quant/methods/registry.h"

namespace oasr::calib {

class Weights {
 public:
  // The layers must outlive this. `originals` take the place of the matrices that the layers keep
  // (load::LoadedModel::originals).
  explicit Weights(const layers::LayerList& layers, std::span<const TensorSource> originals = {});

  std::int64_t rows(const std::string& path) const;  // N of a product, D of a norm
  // Greatest |W[n, k]| over n, [K]. Of convolutions k runs over channels.
  std::vector<float> column_amax(const std::string& path) const;
  // The greatest magnitude of what a factor of each output multiplies: of a row and its bias, [N], or of
  // gamma and beta, [D].
  std::vector<float> output_amax(const std::string& path) const;
  std::vector<float> bias(const std::string& path) const;  // empty: none

  // The weight as quantization methods store it (taps before channels), folded. Of convolutions only
  // without a fold. Borrows from this and `fold`.
  quant::WeightSource source(const std::string& path, const Scaling& fold) const;

  // The product at full precision.
  quant::LinearMethodPtr exact(const std::string& path, std::vector<float> bias,
                               kernels::Activation activation) const;

  // All tensors of the model, by name.
  const std::map<std::string, TensorSource, std::less<>>& tensors() const { return tensors_; }

 private:
  const TensorSource& at(const std::string& name) const;
  std::map<std::string, TensorSource, std::less<>> tensors_;
};

}  // namespace oasr::calib
