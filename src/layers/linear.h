// y = act(x Wᵀ + b) + residual. A Linear keeps its type, path and state-dict names whatever its
// number format is: one method object, chosen when the layer is made, does the forward pass.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/linear/op.h"
#include "layers/matrix.h"
#include "layers/parameters.h"

namespace oasr::layers {

// The numbers of one layer and the code that multiplies with them. Immutable, shared by sessions.
class LinearMethod {
 public:
  virtual ~LinearMethod() = default;
  virtual std::string_view name() const = 0;  // "float"
  virtual DType storage() const = 0;
  virtual std::size_t bytes() const = 0;      // resident
  // x [M, K], residual [M, N] or empty (may be y itself), y [M, N]. A row of y depends on the same
  // row of x and residual only. No allocation in the steady state.
  virtual void forward(ExecContext& context, ConstMatrix x, ConstMatrix residual, Matrix y) const = 0;
};

// Full precision: float32, float16 or bfloat16 storage, float32 arithmetic.
class FloatLinear final : public LinearMethod {
 public:
  // bias: N values or none.
  FloatLinear(std::shared_ptr<const kernels::PackedWeight> weight, std::vector<float> bias,
              kernels::Activation activation);
  std::string_view name() const override { return "float"; }
  DType storage() const override { return weight_->storage(); }
  std::size_t bytes() const override { return weight_->bytes() + bias_.size() * sizeof(float); }
  void forward(ExecContext& context, ConstMatrix x, ConstMatrix residual, Matrix y) const override;

 private:
  std::shared_ptr<const kernels::PackedWeight> weight_;
  std::vector<float> bias_;
  kernels::Activation activation_;
};

// What a Linear is made of in the checkpoint.
struct LinearSpec {
  std::string path;                // "model.encoder.layers.0.self_attn.qkv_proj"
  std::vector<std::string> parts;  // paths whose rows are stacked; none: the path itself
  kernels::Activation activation = kernels::Activation::none;
};

class Linear {
 public:
  Linear(LinearSpec spec, std::unique_ptr<const LinearMethod> method)
      : spec_(std::move(spec)), method_(std::move(method)) {}

  // Packs `<part>.weight` [n, K] of every part, rows in the order of the parts, and `<part>.bias`
  // (zeros for a part without one). Reads row by row: no float32 copy of the weight is made.
  static Result<Linear> load(const Parameters& parameters, LinearSpec spec,
                             const WeightOptions& options);

  const std::string& path() const { return spec_.path; }
  const LinearSpec& spec() const { return spec_; }
  const LinearMethod& method() const { return *method_; }

  void forward(ExecContext& context, ConstMatrix x, Matrix y) const {
    method_->forward(context, x, {}, y);
  }
  void forward(ExecContext& context, ConstMatrix x, ConstMatrix residual, Matrix y) const {
    method_->forward(context, x, residual, y);
  }

 private:
  LinearSpec spec_;
  std::unique_ptr<const LinearMethod> method_;
};

}  // namespace oasr::layers
