#include "quant/methods/conv2d_method.h"

namespace oasr::quant {
namespace {

// The smoother of a channel at every tap, times 1 / input_scale: [taps · C_in].
StaticInput static_input(const Conv2dShape& shape, const Int8Storage& storage) {
  CHECK(storage.input_scale.has_value(), "a convolution's input scale is static");
  const auto one = kernels::static_multiplier(storage.smooth_inv, *storage.input_scale, shape.c_in);
  std::vector<float> all;
  for (std::int64_t tap = 0; tap < shape.taps(); ++tap) all.insert(all.end(), one.begin(), one.end());
  return {.multiplier = std::move(all), .scale = std::vector<float>{*storage.input_scale}};
}

}  // namespace

kernels::NotFinite Conv2dMethod::forward(ExecContext& context, ImageExtent in, ConstMatrix x, Matrix y) const {
  CHECK(x.rows == in.pixels() && x.columns == shape_.c_in && x.stride == x.columns,
        "the input is contiguous pixels of C_in");
  CHECK(y.rows == shape_.outputs(in).pixels() && y.columns == shape_.c_out, "the output does not fit the input");
  return run(context, shape_.geometry(in), x.data, y);
}

FloatConv2d::FloatConv2d(const Conv2dShape& shape, kernels::PackedWeight weight, std::vector<float> bias)
    : Conv2dMethod(shape), weight_(std::move(weight)), bias_(std::move(bias)) {
  CHECK(weight_.n() == shape.c_out && weight_.k() == shape.taps() * shape.c_in, "a weight of the shape");
  CHECK(bias_.empty() || static_cast<std::int64_t>(bias_.size()) == shape.c_out, "a bias of the shape");
}

void FloatConv2d::place(Gpu& gpu) {
  weight_.place(gpu);
  bias_.place(gpu);
}

MethodInfo FloatConv2d::info(Isa isa) const {
  return {.scheme = {},
          .storage = std::string(dtype_name(weight_.storage())),
          .kernel = linear_kernel_name(weight_, isa),
          .operands = "float32",
          .reference = isa == Isa::reference,
          .bytes = static_cast<std::int64_t>(weight_.bytes() + bias_.size() * sizeof(float)),
          .taps = shape().taps()};
}

kernels::NotFinite FloatConv2d::run(ExecContext& context, const kernels::ConvGeometry& geometry, const float* x,
                                    Matrix y) const {
  kernels::conv2d(context, {.x = x,
                            .geometry = geometry,
                            .weight = &weight_,
                            .bias = bias_.data(),
                            .activation = shape().activation,
                            .y = y.data,
                            .ldy = y.stride});
  return {};
}

std::vector<TensorSource> FloatConv2d::state(const std::string& path) const {
  const Conv2dShape& of = shape();
  std::vector<TensorSource> tensors = {convolution_source(
      path + ".weight", weight_, {of.c_out, of.c_in, of.vertical.taps, of.horizontal.taps})};
  add_bias(path, bias_.values(), tensors);
  return tensors;
}

Int8Conv2d::Int8Conv2d(const Conv2dShape& shape, const Int8Storage& storage, std::vector<float> bias,
                       const kernels::ScaledMMImplementation& implementation)
    : Conv2dMethod(shape),
      weight_(kernels::PackedInt8Weight::pack(shape.c_out, shape.taps() * shape.c_in, storage.weight,
                                              storage.weight_scale)),
      bias_(std::move(bias)),
      smooth_inv_(storage.smooth_inv),
      input_(static_input(shape, storage)),
      implementation_(&implementation) {
  CHECK(bias_.empty() || static_cast<std::int64_t>(bias_.size()) == shape.c_out, "a bias of the shape");
}

void Int8Conv2d::place(Gpu& gpu) {
  weight_.place(gpu);
  bias_.place(gpu);
  input_.place(gpu);
  kernel_on_gpu_ = kernels::implementation_name(*implementation_, gpu.info());
}

MethodInfo Int8Conv2d::info(Isa isa) const {
  return {.scheme = "int8_w8a8_static",
          .storage = "int8",
          .kernel = kernel_on_gpu_.empty() ? kernels::implementation_name(*implementation_, isa) : kernel_on_gpu_,
          .operands = "int8",
          .reference = implementation_->backend == kernels::ScaledMMBackend::reference,
          .bytes = static_cast<std::int64_t>(weight_.bytes() + (bias_.size() + smooth_inv_.size()) * sizeof(float)),
          .taps = shape().taps()};
}

kernels::NotFinite Int8Conv2d::run(ExecContext& context, const kernels::ConvGeometry& geometry, const float* x,
                                   Matrix y) const {
  return implementation_->conv(context,
                               {.x = x,
                                .geometry = geometry,
                                .multiplier = input_.multiplier.data(),
                                .x_scale = input_.scale.data(),
                                .weight = &weight_,
                                .bias = bias_.data(),
                                .activation = shape().activation},
                               {.y = y.data, .ldy = y.stride});
}

std::vector<TensorSource> Int8Conv2d::state(const std::string& path) const {
  const Conv2dShape& of = shape();
  std::vector<TensorSource> tensors;
  tensors.push_back({.name = path + ".weight",
                     .format = StorageFormat::i8,
                     .shape = {of.c_out, of.vertical.taps, of.horizontal.taps, of.c_in},
                     .row = [this](std::int64_t row, std::span<std::byte> out) {
                       weight_.unpack_row(row, {reinterpret_cast<std::int8_t*>(out.data()), out.size()});
                     }});
  tensors.push_back(float_source(path + ".weight_scale", {of.c_out},
                                 {weight_.scale(), static_cast<std::size_t>(of.c_out)}));
  if (!smooth_inv_.empty()) tensors.push_back(float_source(path + ".smooth_inv", {of.c_in}, smooth_inv_));
  tensors.push_back(float_source(path + ".input_scale", {1}, input_.scale.values()));
  add_bias(path, bias_.values(), tensors);
  return tensors;
}

}  // namespace oasr::quant
