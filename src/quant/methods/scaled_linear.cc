#include "quant/methods/scaled_linear.h"

#include "base/check.h"
#include "kernels/scaled_mm_int4/op.h"

namespace oasr::quant {
namespace {

// A product by the forms of its input and output.
template <class Weight>
kernels::NotFinite run(const kernels::ScaledMMFunctions<Weight>& with, ExecContext& context,
                       const kernels::ScaledMMArgsOf<Weight>& args, const kernels::FloatOutput& out) {
  with.mm(context, args, out);
  return {};
}
template <class Weight>
kernels::NotFinite run(const kernels::ScaledMMFunctions<Weight>& with, ExecContext& context,
                       const kernels::ScaledMMArgsOf<Weight>& args, const kernels::Int8Output& out) {
  return with.mm_quant(context, args, out);
}
template <class Weight>
kernels::NotFinite run(const kernels::ScaledMMFunctions<Weight>& with, ExecContext& context,
                       const kernels::DynamicScaledMMArgsOf<Weight>& args, const kernels::FloatOutput& out) {
  return with.dynamic(context, args, out);
}
template <class Weight>
kernels::NotFinite run(const kernels::ScaledMMFunctions<Weight>& with, ExecContext& context,
                       const kernels::DynamicScaledMMArgsOf<Weight>& args, const kernels::Int8Output& out) {
  return with.dynamic_quant(context, args, out);
}
template <class Weight>
kernels::NotFinite run(const kernels::ScaledMMFunctions<Weight>& with, ExecContext& context,
                       const kernels::StaticScaledMMArgsOf<Weight>& args, const kernels::FloatOutput& out) {
  return with.fixed(context, args, out);
}
template <class Weight>
kernels::NotFinite run(const kernels::ScaledMMFunctions<Weight>& with, ExecContext& context,
                       const kernels::StaticScaledMMArgsOf<Weight>& args, const kernels::Int8Output& out) {
  return with.fixed_quant(context, args, out);
}

}  // namespace

template <class Weight, class Implementation>
ScaledLinear<Weight, Implementation>::ScaledLinear(Weight weight, std::vector<float> smooth_inv,
                                                   std::optional<float> input_scale, std::vector<float> bias,
                                                   kernels::Activation activation,
                                                   const Implementation& implementation)
    : weight_(std::move(weight)),
      bias_(std::move(bias)),
      smooth_inv_(std::move(smooth_inv)),
      activation_(activation),
      implementation_(&implementation) {
  CHECK(bias_.empty() || static_cast<std::int64_t>(bias_.size()) == weight_.n(),
        "a bias of another size than the output");
  CHECK(smooth_inv_.empty() || static_cast<std::int64_t>(smooth_inv_.size()) == weight_.k(),
        "a smoother of another size than the input");
  if (!input_scale) return;
  static_input_ = StaticInput{.multiplier = kernels::static_multiplier(smooth_inv_.values(), *input_scale, weight_.k()),
                              .scale = std::vector<float>{*input_scale}};
}

template <class Weight, class Implementation>
void ScaledLinear<Weight, Implementation>::place(Gpu& gpu) {
  if constexpr (requires { weight_.place(gpu); }) {
    weight_.place(gpu);
    kernel_on_gpu_ = kernels::implementation_name(*implementation_, gpu.info());
  } else {
    CHECK(false, "a method without kernels for a GPU");
  }
  bias_.place(gpu);
  smooth_inv_.place(gpu);
  if (static_input_) static_input_->place(gpu);
}

template <class Weight, class Implementation>
MethodInfo ScaledLinear<Weight, Implementation>::kernel_info(Isa isa) const {
  MethodInfo info;
  info.kernel = kernel_on_gpu_.empty() ? kernels::implementation_name(*implementation_, isa) : kernel_on_gpu_;
  info.reference = implementation_->backend == kernels::ScaledMMBackend::reference;
  info.bytes = static_cast<std::int64_t>((bias_.size() + smooth_inv_.size()) * sizeof(float));
  return info;
}

template <class Weight, class Implementation>
void ScaledLinear<Weight, Implementation>::reserve(ExecContext& context) const {
  implementation_->reserve(context, weight_.k());
}

template <class Weight, class Implementation>
InputForm ScaledLinear<Weight, Implementation>::input_form() const {
  if (static_input_) return InputForm::int8_static;
  return smooth_inv_.empty() ? InputForm::int8_per_token : InputForm::floats;
}

template <class Weight, class Implementation>
template <class Output>
kernels::NotFinite ScaledLinear<Weight, Implementation>::multiply(ExecContext& context, const Activation& x,
                                                                  const Output& out) const {
  CHECK(x.columns() == weight_.k(), "an input of another width than the weight");
  if (ActivationAccess::is_int8(x)) {
    CHECK(ActivationAccess::is_static(x) == static_input_.has_value(),
          "a link feeds int8 rows of another form than the layer takes");
    const kernels::ScaledMMArgsOf<Weight> args{.a = ActivationAccess::q(x),
                                     .lda = x.columns(),
                                     .a_scale = ActivationAccess::scale(x),
                                     .m = x.rows(),
                                     .weight = &weight_,
                                     .bias = bias_.data(),
                                     .activation = activation_};
    return run(*implementation_, context, args, out);
  }
  const ConstMatrix values = ActivationAccess::floats(x);
  if (static_input_) {
    const kernels::StaticScaledMMArgsOf<Weight> args{.x = values.data,
                                           .ldx = values.stride,
                                           .m = values.rows,
                                           .multiplier = static_input_->multiplier.data(),
                                           .input_scale = static_input_->scale.data(),
                                           .weight = &weight_,
                                           .bias = bias_.data(),
                                           .activation = activation_};
    return run(*implementation_, context, args, out);
  }
  const kernels::DynamicScaledMMArgsOf<Weight> args{.x = values.data,
                                          .ldx = values.stride,
                                          .m = values.rows,
                                          .smooth_inv = smooth_inv_.data(),
                                          .weight = &weight_,
                                          .bias = bias_.data(),
                                          .activation = activation_};
  return run(*implementation_, context, args, out);
}

template <class Weight, class Implementation>
kernels::NotFinite ScaledLinear<Weight, Implementation>::forward(ExecContext& context, const Activation& x,
                                       const Residual& residual, Matrix y) const {
  CHECK(y.columns == weight_.n() && x.rows() == y.rows, "an output of another shape");
  return multiply(context, x,
                  kernels::FloatOutput{.residual = residual.rows.data,
                                       .ldr = residual.rows.stride,
                                       .alpha = residual.alpha,
                                       .y = y.data,
                                       .ldy = y.stride});
}

template <class Weight, class Implementation>
kernels::NotFinite ScaledLinear<Weight, Implementation>::forward_into(ExecContext& context, const Activation& x,
                                            const StaticInput& consumer, Activation& y) const {
  CHECK(y.columns() == weight_.n() && x.rows() == y.rows(), "an output of another shape");
  const Int8Rows rows = ActivationAccess::static_out(y, consumer.scale.data());
  return multiply(context, x,
                  kernels::Int8Output{.multiplier = consumer.multiplier.data(),
                                      .q = rows.q,
                                      .ldq = rows.ldq});
}

template class ScaledLinear<kernels::PackedInt8Weight, kernels::ScaledMMImplementation>;
template class ScaledLinear<kernels::PackedInt4Weight, kernels::Int4MMImplementation>;

}  // namespace oasr::quant
