// y = act(x Wᵀ + b) + residual. A Linear keeps its type, path and state-dict names whatever its
// number format is: one method object, chosen when the layer is made, does the forward pass.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "layers/parameters.h"
#include "quant/methods/linear_method.h"

namespace oasr::layers {

// What a Linear is made of in the checkpoint.
struct LinearSpec {
  std::string path;                // "model.encoder.layers.0.self_attn.qkv_proj"
  std::vector<std::string> parts;  // paths whose rows are stacked; none: the path itself
  kernels::Activation activation = kernels::Activation::none;
};

class Linear {
 public:
  Linear(LinearSpec spec, std::unique_ptr<quant::LinearMethod> method)
      : spec_(std::move(spec)), method_(std::move(method)) {}

  // Makes the method that the options name for the path, from `<part>.weight` [n, K] of every part,
  // rows in the order of the parts, and `<part>.bias` (zeros for a part without one); or from the
  // path's own tensors, as a native checkpoint has them. Reads row by row: no float32 copy of the
  // weight is made.
  static Result<Linear> load(const Parameters& parameters, LinearSpec spec,
                             const WeightOptions& options);

  void place(Gpu& gpu) { method_->place(gpu); }

  const std::string& path() const { return spec_.path; }
  const LinearSpec& spec() const { return spec_; }
  const quant::LinearMethod& method() const { return *method_; }

  // x [M, K] and y [M, N]. x may be what a linked producer has left.
  void forward(ExecContext& context, const quant::Activation& x, Matrix y) const {
    forward(context, x, {}, y);
  }
  // The residual [M, N] is added; it may be y itself.
  void forward(ExecContext& context, const quant::Activation& x, const quant::Residual& residual,
               Matrix y) const;
  // The output goes to one consumer: in the int8 form of a link, or as floats.
  void forward(ExecContext& context, const quant::Activation& x, quant::Activation& y) const;

  // Puts another method of the same shape in place and returns the one that was there. For experiments with a
  // model that nobody else runs: layers that are linked must stay as they are.
  std::unique_ptr<quant::LinearMethod> exchange(std::unique_ptr<quant::LinearMethod> method);

  // Makes the layer write the int8 input of its only consumer, whose method must outlive it.
  void link(const Linear& consumer);
  bool linked() const { return consumer_ != nullptr; }

 private:
  LinearSpec spec_;
  std::unique_ptr<quant::LinearMethod> method_;
  const quant::StaticInput* consumer_ = nullptr;  // owned by the consumer's method
};

}  // namespace oasr::layers
