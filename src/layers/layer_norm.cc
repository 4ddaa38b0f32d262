#include "layers/layer_norm.h"

#include "kernels/norm/op.h"

namespace oasr::layers {

Result<LayerNorm> LayerNorm::load(const Parameters& parameters, std::string path) {
  LayerNorm layer;
  layer.gamma_ = TRY(read_floats(parameters, path + ".weight"));
  layer.beta_ = TRY(read_floats(parameters, path + ".bias"));
  layer.path_ = std::move(path);
  return layer;
}

void LayerNorm::forward(ExecContext& context, ConstMatrix x, Matrix y) const {
  CHECK(x.rows == y.rows && x.columns == y.columns &&
            x.columns == static_cast<std::int64_t>(gamma_.size()),
        "shapes do not fit the norm");
  kernels::layer_norm(context, {.x = x.data,
                                .ldx = x.stride,
                                .m = x.rows,
                                .d = x.columns,
                                .gamma = gamma_.data(),
                                .beta = beta_.data(),
                                .eps = kEpsilon,
                                .y = y.data,
                                .ldy = y.stride});
}

}  // namespace oasr::layers
