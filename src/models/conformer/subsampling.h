// The Conformer's front: global statistics, strided convolutions, one product.
#pragma once

#include <vector>

#include "layers/buffer.h"
#include "layers/layer_list.h"
#include "models/conformer/config.h"

namespace oasr::models::conformer {

class Subsampling {
 public:
  static Result<Subsampling> load(const Config& config, const layers::Parameters& parameters,
                                  const layers::WeightOptions& options, const Checkpoint& checkpoint);

  // Memory of passes, grown to the largest block.
  struct Buffers {
    explicit Buffers(Gpu* gpu) : features(0, gpu) {}  // null: on the host
    layers::Buffer features;
    std::vector<layers::Buffer> stages;
  };

  // features [T, input_dim] to y [config.encoder_frames(T), D], scaled by √D. Works through time in blocks, so
  // that memory does not grow with T; a frame's bits depend on the features that it sees only.
  void forward(ExecContext& context, ConstMatrix features, Matrix y, Buffers& buffers) const;

  void list(layers::LayerList& layers);

 private:
  Subsampling(Config config, layers::Linear out) : config_(std::move(config)), out_(std::move(out)) {}
  Status load_cmvn(const layers::Parameters& parameters, const Checkpoint& checkpoint);
  void block(ExecContext& context, ConstMatrix features, Matrix y, Buffers& buffers) const;

  Config config_;
  Floats mean_, istd_;  // empty: features are taken as they are
  Floats shift_;        // -mean
  std::vector<layers::Conv2d> convs_;
  layers::Linear out_;
};

}  // namespace oasr::models::conformer
