#include "layers/conv1d.h"

#include "layers/pack.h"

namespace oasr::layers {

void FloatConv1d::forward(ExecContext& context, Matrix padded, ConstMatrix residual,
                          Matrix y) const {
  CHECK(padded.columns * kernels::kConvTaps == weight_.k() && padded.stride == padded.columns,
        "the input is contiguous rows of C_in");
  const std::int64_t frames = padded.rows - 2;
  CHECK(y.rows == kernels::conv1d_frames(frames, stride_) && y.columns == weight_.n(),
        "the output does not fit the input");
  kernels::conv1d(context, {.x = padded.data,
                            .frames = frames,
                            .stride = stride_,
                            .weight = &weight_,
                            .bias = bias_.data(),
                            .activation = activation_,
                            .residual = residual.data,
                            .ldr = residual.stride,
                            .y = y.data,
                            .ldy = y.stride});
}

Result<Conv1d> Conv1d::load(const Parameters& parameters, std::string path, int stride,
                            kernels::Activation activation, const WeightOptions& options) {
  auto bias = TRY(read_floats(parameters, path + ".bias"));
  auto weight = TRY(pack_convolution(parameters, path + ".weight", options));
  auto method =
      std::make_unique<FloatConv1d>(std::move(weight), std::move(bias), stride, activation);
  return Conv1d(std::move(path), std::move(method));
}

}  // namespace oasr::layers
