#include "quant/methods/float_linear.h"

#include <cstring>

#include "kernels/lane_choice.h"

namespace oasr::quant {
namespace {

StorageFormat format_of(DType dtype) {
  if (dtype == DType::f16) return StorageFormat::f16;
  if (dtype == DType::bf16) return StorageFormat::bf16;
  return StorageFormat::f32;
}

// Exact: the values came from this dtype.
void narrow(std::span<const float> values, DType dtype, std::span<std::byte> out) {
  if (dtype == DType::f32) {
    std::memcpy(out.data(), values.data(), values.size_bytes());
    return;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t bits =
        dtype == DType::f16 ? to_half(values[i]).bits : to_bfloat16(values[i]).bits;
    std::memcpy(out.data() + 2 * i, &bits, 2);
  }
}

}  // namespace

TensorSource weight_source(const std::string& name, const kernels::PackedWeight& weight) {
  return {.name = name,
          .format = format_of(weight.storage()),
          .shape = {weight.n(), weight.k()},
          .row = [&weight, values = std::vector<float>(static_cast<std::size_t>(weight.k()))](
                     std::int64_t row, std::span<std::byte> out) mutable {
            weight.unpack_row(row, values);
            narrow(values, weight.storage(), out);
          }};
}

TensorSource convolution_source(const std::string& name, const kernels::PackedWeight& weight, const Shape& shape) {
  const std::int64_t channels = shape[1], taps = weight.k() / channels;
  CHECK(shape[0] == weight.n() && shape.elements() == weight.n() * weight.k(), "the weight of the shape");
  const std::size_t size = dtype_size(weight.storage());
  TensorSource source = weight_source(name, weight);
  source.shape = shape;
  source.row = [channels, taps, size, row = source.row,
                taps_first = std::vector<std::byte>(static_cast<std::size_t>(weight.k()) * size)](
                   std::int64_t n, std::span<std::byte> out) mutable {
    row(n, taps_first);
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      for (std::int64_t c = 0; c < channels; ++c) {
        std::memcpy(out.data() + static_cast<std::size_t>(c * taps + tap) * size,
                    taps_first.data() + static_cast<std::size_t>(tap * channels + c) * size, size);
      }
    }
  };
  return source;
}

FloatLinear::FloatLinear(std::shared_ptr<kernels::PackedWeight> weight,
                         std::vector<float> bias, kernels::Activation activation)
    : weight_(std::move(weight)), bias_(std::move(bias)), activation_(activation) {
  CHECK(bias_.empty() || static_cast<std::int64_t>(bias_.size()) == weight_->n(),
        "a bias of another size than the output");
}

std::string linear_kernel_name(const kernels::PackedWeight& weight, Isa isa) {
  return "linear " + std::string(weight.placed() ? kernels::kLinearCudaName
                                                 : kernels::lane_name(kernels::linear_lane(isa), isa));
}

void FloatLinear::place(Gpu& gpu) {
  if (!weight_->placed()) weight_->place(gpu);  // a tied head shares it with the embedding
  bias_.place(gpu);
}

MethodInfo FloatLinear::info(Isa isa) const {
  return {.scheme = {},
          .storage = std::string(dtype_name(weight_->storage())),
          .kernel = linear_kernel_name(*weight_, isa),
          .operands = "float32",
          .reference = isa == Isa::reference,
          .bytes = static_cast<std::int64_t>(weight_->bytes() + bias_.size() * sizeof(float))};
}

kernels::NotFinite FloatLinear::forward(ExecContext& context, const Activation& x,
                                        const Residual& residual, Matrix y) const {
  CHECK(x.columns() == weight_->k() && y.columns == weight_->n() && x.rows() == y.rows,
        "shapes do not fit the weight");
  const ConstMatrix values = ActivationAccess::floats(x);
  kernels::linear(context, {.x = values.data,
                            .ldx = values.stride,
                            .m = values.rows,
                            .weight = weight_.get(),
                            .bias = bias_.data(),
                            .activation = activation_,
                            .residual = residual.rows.data,
                            .ldr = residual.rows.stride,
                            .alpha = residual.alpha,
                            .y = y.data,
                            .ldy = y.stride});
  return {};
}

std::vector<TensorSource> FloatLinear::state(const std::string& path) const {
  std::vector<TensorSource> tensors = {weight_source(path + ".weight", *weight_)};
  add_bias(path, bias_.values(), tensors);
  return tensors;
}

}  // namespace oasr::quant
