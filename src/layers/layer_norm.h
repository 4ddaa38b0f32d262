// LayerNorm over channels with PyTorch's epsilon.
#pragma once

#include <string>
#include <vector>

#include "device/thread_pool.h"
#include "layers/matrix.h"
#include "layers/parameters.h"

namespace oasr::layers {

class LayerNorm {
 public:
  static constexpr float kEpsilon = 1e-5f;

  // `<path>.weight` [D] and `<path>.bias` [D].
  static Result<LayerNorm> load(const Parameters& parameters, std::string path);

  const std::string& path() const { return path_; }

  // x, y [M, D]; y may be x.
  void forward(ExecContext& context, ConstMatrix x, Matrix y) const;

 private:
  std::string path_;
  std::vector<float> gamma_, beta_;
};

}  // namespace oasr::layers
