#include "quant/methods/conv1d_method.h"

#include <algorithm>
#include <cstring>

namespace oasr::quant {
namespace {

constexpr std::int64_t kTaps = kernels::kConvTaps;

// The smoother of every tap: [3 · C_in].
Int8Storage for_all_taps(Int8Storage storage) {
  const std::vector<float> one = storage.smooth_inv;
  for (std::int64_t tap = 1; tap < kTaps; ++tap) {
    storage.smooth_inv.insert(storage.smooth_inv.end(), one.begin(), one.end());
  }
  return storage;
}

}  // namespace

void FloatConv1d::place(Gpu& gpu) {
  weight_.place(gpu);
  bias_.place(gpu);
}

MethodInfo FloatConv1d::info(Isa isa) const {
  return {.scheme = {},
          .storage = std::string(dtype_name(weight_.storage())),
          .kernel = linear_kernel_name(weight_, isa),
          .operands = "float32",
          .reference = isa == Isa::reference,
          .bytes = static_cast<std::int64_t>(weight_.bytes() + bias_.size() * sizeof(float)),
          .taps = kTaps};
}

kernels::NotFinite FloatConv1d::forward(ExecContext& context, Matrix padded, ConstMatrix residual,
                                        Matrix y) const {
  CHECK(padded.columns * kTaps == weight_.k() && padded.stride == padded.columns,
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
  return {};
}

std::vector<TensorSource> FloatConv1d::state(const std::string& path) const {
  std::vector<TensorSource> tensors = {
      convolution_source(path + ".weight", weight_, {weight_.n(), weight_.k() / kTaps, kTaps})};
  add_bias(path, bias_.values(), tensors);
  return tensors;
}

Int8Conv1d::Int8Conv1d(std::int64_t c_out, std::int64_t c_in, const Int8Storage& storage,
                       std::vector<float> bias, std::int64_t stride, kernels::Activation activation,
                       const kernels::ScaledMMImplementation& implementation)
    : channels_(c_in),
      stride_(stride),
      smooth_inv_(storage.smooth_inv),
      product_(c_out, kTaps * c_in, for_all_taps(storage), std::move(bias), activation, implementation) {
  CHECK(storage.input_scale.has_value(), "a convolution's input scale is static");
}

void Int8Conv1d::place(Gpu& gpu) { product_.place(gpu); }

MethodInfo Int8Conv1d::info(Isa isa) const {
  MethodInfo info = product_.info(isa);
  info.taps = kTaps;
  return info;
}

kernels::NotFinite Int8Conv1d::forward(ExecContext& context, Matrix padded, ConstMatrix residual,
                                       Matrix y) const {
  CHECK(padded.columns == channels_ && padded.stride == channels_,
        "the input is contiguous rows of C_in");
  const std::int64_t frames = padded.rows - 2;
  kernels::zero_padding(context, padded);
  const ConstMatrix rows{padded.data, kernels::conv1d_frames(frames, stride_), kTaps * channels_,
                         stride_ * channels_};
  return product_.forward(context, rows, residual, y);
}

std::vector<TensorSource> Int8Conv1d::state(const std::string& path) const {
  std::vector<TensorSource> tensors = product_.state(path);
  for (TensorSource& tensor : tensors) {
    if (tensor.name == path + ".weight") tensor.shape = {product_.out_features(), kTaps, channels_};
    if (tensor.name != path + ".smooth_inv") continue;
    tensor.shape = {channels_};
    tensor.row = [this](std::int64_t, std::span<std::byte> out) {
      std::memcpy(out.data(), smooth_inv_.data(), smooth_inv_.size() * sizeof(float));
    };
  }
  return tensors;
}

}  // namespace oasr::quant
