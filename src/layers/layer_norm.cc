#include "layers/layer_norm.h"

#include "kernels/quantize/norm.h"
#include "layers/watched.h"

namespace oasr::layers {
namespace {

// Rows of floats in, rows of elements of `size` bytes out.
LayerWork moved(ConstMatrix x, std::size_t size) {
  return {.bytes = static_cast<double>(x.rows * x.columns) * static_cast<double>(sizeof(float) + size)};
}

}  // namespace

Result<LayerNorm> LayerNorm::load(const Parameters& parameters, std::string path) {
  LayerNorm layer;
  layer.gamma_ = TRY(read_floats(parameters, path + ".weight"));
  layer.beta_ = TRY(read_floats(parameters, path + ".bias"));
  layer.path_ = std::move(path);
  return layer;
}

void LayerNorm::forward(ExecContext& context, ConstMatrix x, Matrix y, kernels::Activation activation) const {
  CHECK(x.rows == y.rows && x.columns == y.columns &&
            x.columns == static_cast<std::int64_t>(gamma_.size()),
        "shapes do not fit the norm");
  const auto run = [&] {
    kernels::layer_norm(context, {.x = x.data,
                                  .ldx = x.stride,
                                  .m = x.rows,
                                  .d = x.columns,
                                  .gamma = gamma_.data(),
                                  .beta = beta_.data(),
                                  .eps = kEpsilon,
                                  .y = y.data,
                                  .ldy = y.stride,
                                  .activation = activation});
    return kernels::NotFinite{};
  };
  watched(context, path_, x.rows, run, moved(x, sizeof(float)));
  show_output(context, path_, y);
}

void LayerNorm::forward(ExecContext& context, ConstMatrix x, quant::Activation& y) const {
  if (!emits_int8_) {
    forward(context, x, quant::ActivationAccess::floats_out(y));
    return;
  }
  CHECK(x.rows == y.rows() && x.columns == y.columns() &&
            x.columns == static_cast<std::int64_t>(gamma_.size()),
        "shapes do not fit the norm");
  const quant::Int8Rows rows = quant::ActivationAccess::per_token_out(y);
  const auto run = [&] {
    return kernels::layer_norm_quant(context, {.x = x.data,
                                               .ldx = x.stride,
                                               .m = x.rows,
                                               .d = x.columns,
                                               .gamma = gamma_.data(),
                                               .beta = beta_.data(),
                                               .eps = kEpsilon,
                                               .q = rows.q,
                                               .ldq = rows.ldq,
                                               .scale = rows.scale});
  };
  watched(context, path_, x.rows, run, moved(x, sizeof(std::int8_t)));
}

void LayerNorm::reserve(ExecContext& context) const {
  if (emits_int8_) {
    kernels::layer_norm_quant_reserve(context, static_cast<std::int64_t>(gamma_.size()));
  }
}

std::vector<TensorSource> LayerNorm::state() const {
  return {quant::float_source(path_ + ".weight", {static_cast<std::int64_t>(gamma_.size())}, gamma_.values()),
          quant::float_source(path_ + ".bias", {static_cast<std::int64_t>(beta_.size())}, beta_.values())};
}

}  // namespace oasr::layers
