// Full precision: float32, float16 or bfloat16 storage, float32 arithmetic.
#pragma once

#include <memory>

#include "quant/methods/linear_method.h"

namespace oasr::quant {

class FloatLinear final : public LinearMethod {
 public:
  // bias: N values or none. The weight may be shared (a tied head).
  FloatLinear(std::shared_ptr<kernels::PackedWeight> weight, std::vector<float> bias,
              kernels::Activation activation);

  void place(Gpu& gpu) override;
  MethodInfo info(Isa isa) const override;
  std::int64_t in_features() const override { return weight_->k(); }
  std::int64_t out_features() const override { return weight_->n(); }
  void reserve(ExecContext&) const override {}
  kernels::NotFinite forward(ExecContext& context, const Activation& x, const Residual& residual,
                             Matrix y) const override;
  std::vector<TensorSource> state(const std::string& path) const override;

 private:
  std::shared_ptr<kernels::PackedWeight> weight_;
  Floats bias_;
  kernels::Activation activation_;
};

// "linear avx2": what multiplies with the weight where it is.
std::string linear_kernel_name(const kernels::PackedWeight& weight, Isa isa);

// The weight [N, K] as a tensor of a state dict, in its own dtype; it must outlive the source.
TensorSource weight_source(const std::string& name, const kernels::PackedWeight& weight);

// The weight of a convolution, packed with taps before channels, as checkpoints have it: `shape` is [N, C_in,
// taps…]. It must outlive the source.
TensorSource convolution_source(const std::string& name, const kernels::PackedWeight& weight, const Shape& shape);

}  // namespace oasr::quant
