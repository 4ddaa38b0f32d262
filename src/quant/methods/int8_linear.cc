#include "quant/methods/int8_linear.h"

namespace oasr::quant {
namespace {

const float* or_null(const std::vector<float>& values) {
  return values.empty() ? nullptr : values.data();
}

using Implementation = kernels::ScaledMMImplementation;

// A product by the form of its output.
kernels::NotFinite run(const Implementation& with, ExecContext& context,
                       const kernels::ScaledMMArgs& args, const kernels::FloatOutput& out) {
  with.mm(context, args, out);
  return {};
}
kernels::NotFinite run(const Implementation& with, ExecContext& context,
                       const kernels::ScaledMMArgs& args, const kernels::Int8Output& out) {
  return with.mm_quant(context, args, out);
}
kernels::NotFinite run(const Implementation& with, ExecContext& context,
                       const kernels::DynamicScaledMMArgs& args, const kernels::FloatOutput& out) {
  return with.dynamic(context, args, out);
}
kernels::NotFinite run(const Implementation& with, ExecContext& context,
                       const kernels::DynamicScaledMMArgs& args, const kernels::Int8Output& out) {
  return with.dynamic_quant(context, args, out);
}
kernels::NotFinite run(const Implementation& with, ExecContext& context,
                       const kernels::StaticScaledMMArgs& args, const kernels::FloatOutput& out) {
  return with.fixed(context, args, out);
}
kernels::NotFinite run(const Implementation& with, ExecContext& context,
                       const kernels::StaticScaledMMArgs& args, const kernels::Int8Output& out) {
  return with.fixed_quant(context, args, out);
}

}  // namespace

Int8Linear::Int8Linear(std::int64_t n, std::int64_t k, const Int8Storage& storage,
                       std::vector<float> bias, kernels::Activation activation,
                       const kernels::ScaledMMImplementation& implementation)
    : weight_(kernels::PackedInt8Weight::pack(n, k, storage.weight, storage.weight_scale)),
      bias_(std::move(bias)),
      smooth_inv_(storage.smooth_inv),
      activation_(activation),
      implementation_(&implementation) {
  CHECK(bias_.empty() || static_cast<std::int64_t>(bias_.size()) == n,
        "a bias of another size than the output");
  CHECK(smooth_inv_.empty() || static_cast<std::int64_t>(smooth_inv_.size()) == k,
        "a smoother of another size than the input");
  if (!storage.input_scale) return;
  static_input_ = StaticInput{
      .multiplier = kernels::static_multiplier(smooth_inv_, *storage.input_scale, k),
      .scale = *storage.input_scale};
}

MethodInfo Int8Linear::info(Isa isa) const {
  return {.scheme = static_input_ ? "int8_w8a8_static" : "int8_w8a8",
          .storage = "int8",
          .kernel = kernels::implementation_name(*implementation_, isa),
          .operands = "int8",
          .reference = implementation_->backend == kernels::ScaledMMBackend::reference,
          .bytes = static_cast<std::int64_t>(weight_.bytes() +
                                             (bias_.size() + smooth_inv_.size()) * sizeof(float))};
}

void Int8Linear::reserve(ExecContext& context) const {
  implementation_->reserve(context, weight_.k());
}

InputForm Int8Linear::input_form() const {
  if (static_input_) return InputForm::int8_static;
  return smooth_inv_.empty() ? InputForm::int8_per_token : InputForm::floats;
}

template <class Output>
kernels::NotFinite Int8Linear::multiply(ExecContext& context, const Activation& x,
                                        const Output& out) const {
  CHECK(x.columns() == weight_.k(), "an input of another width than the weight");
  if (ActivationAccess::is_int8(x)) {
    CHECK(ActivationAccess::is_static(x) == static_input_.has_value(),
          "a link feeds int8 rows of another form than the layer takes");
    const kernels::ScaledMMArgs args{.a = ActivationAccess::q(x),
                                     .lda = x.columns(),
                                     .a_scale = ActivationAccess::scale(x),
                                     .m = x.rows(),
                                     .weight = &weight_,
                                     .bias = or_null(bias_),
                                     .activation = activation_};
    return run(*implementation_, context, args, out);
  }
  const ConstMatrix values = ActivationAccess::floats(x);
  if (static_input_) {
    const kernels::StaticScaledMMArgs args{.x = values.data,
                                           .ldx = values.stride,
                                           .m = values.rows,
                                           .multiplier = static_input_->multiplier.data(),
                                           .input_scale = &static_input_->scale,
                                           .weight = &weight_,
                                           .bias = or_null(bias_),
                                           .activation = activation_};
    return run(*implementation_, context, args, out);
  }
  const kernels::DynamicScaledMMArgs args{.x = values.data,
                                          .ldx = values.stride,
                                          .m = values.rows,
                                          .smooth_inv = or_null(smooth_inv_),
                                          .weight = &weight_,
                                          .bias = or_null(bias_),
                                          .activation = activation_};
  return run(*implementation_, context, args, out);
}

kernels::NotFinite Int8Linear::forward(ExecContext& context, const Activation& x,
                                       const Residual& residual, Matrix y) const {
  CHECK(y.columns == weight_.n() && x.rows() == y.rows, "an output of another shape");
  return multiply(context, x,
                  kernels::FloatOutput{.residual = residual.rows.data,
                                       .ldr = residual.rows.stride,
                                       .alpha = residual.alpha,
                                       .y = y.data,
                                       .ldy = y.stride});
}

kernels::NotFinite Int8Linear::forward_into(ExecContext& context, const Activation& x,
                                            const StaticInput& consumer, Activation& y) const {
  CHECK(y.columns() == weight_.n() && x.rows() == y.rows(), "an output of another shape");
  const Int8Rows rows = ActivationAccess::static_out(y, &consumer.scale);
  return multiply(context, x,
                  kernels::Int8Output{.multiplier = consumer.multiplier.data(),
                                      .q = rows.q,
                                      .ldq = rows.ldq});
}

std::vector<TensorSource> Int8Linear::state(const std::string& path) const {
  std::vector<TensorSource> tensors;
  tensors.push_back({.name = path + ".weight",
                     .format = StorageFormat::i8,
                     .shape = {weight_.n(), weight_.k()},
                     .row = [this](std::int64_t row, std::span<std::byte> out) {
                       weight_.unpack_row(row, {reinterpret_cast<std::int8_t*>(out.data()), out.size()});
                     }});
  tensors.push_back(float_source(path + ".weight_scale", {weight_.n()},
                                 {weight_.scale(), static_cast<std::size_t>(weight_.n())}));
  if (!smooth_inv_.empty()) tensors.push_back(float_source(path + ".smooth_inv", {weight_.k()}, smooth_inv_));
  if (static_input_) tensors.push_back(float_source(path + ".input_scale", {1}, {&static_input_->scale, 1}));
  add_bias(path, bias_, tensors);
  return tensors;
}

Result<Int8Storage> quantize_weight(Isa isa, const LinearSource& source) {
  const auto k = static_cast<std::size_t>(source.k);
  Int8Storage storage;
  storage.weight.resize(static_cast<std::size_t>(source.n) * k);
  storage.weight_scale.resize(static_cast<std::size_t>(source.n));
  std::vector<float> row(k);
  const auto quantize = kernels::quantize_lane(isa).per_token;
  for (std::int64_t n = 0; n < source.n; ++n) {
    source.rows(n, row);
    const kernels::NotFinite found =
        quantize({.x = row.data(),
                  .ldx = source.k,
                  .m = 1,
                  .k = source.k,
                  .q = storage.weight.data() + static_cast<std::size_t>(n) * k,
                  .ldq = source.k,
                  .scale = storage.weight_scale.data() + n},
                 0, 1);
    if (found) {
      return unexpected(ErrorCode::bad_checkpoint,
                        "row " + std::to_string(n) + " of the weight holds NaN or infinity", {},
                        "the checkpoint is damaged: get it again");
    }
  }
  return storage;
}

}  // namespace oasr::quant
