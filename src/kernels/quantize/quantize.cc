#include <algorithm>

#include "kernels/lane_choice.h"
#include "kernels/quantize/cuda.h"
#include "kernels/quantize/first_row.h"
#include "kernels/quantize/norm.h"

namespace oasr::kernels {
namespace {

constexpr std::int64_t kItem = 32'000;  // elements: below, an item is not worth a hand-out

// Runs body(m0, m1, thread) over blocks of rows of `width` elements.
template <class F>
NotFinite over_rows(ExecContext& context, std::int64_t m, std::int64_t width, F body) {
  const std::int64_t rows = std::max<std::int64_t>(1, kItem / width);
  FirstRow first;
  context.pool->parallel_for((m + rows - 1) / rows, [&](std::int64_t item, int thread) {
    first.merge(body(item * rows, std::min(m, (item + 1) * rows), thread));
  });
  return first.value();
}

}  // namespace

const QuantizeLane& quantize_lane(Isa isa) { return choose_lane(quantize_lanes(), isa); }
const LayerNormQuantLane& layer_norm_quant_lane(Isa isa) {
  return choose_lane(layer_norm_quant_lanes(), isa);
}

std::vector<float> static_multiplier(std::span<const float> smooth_inv, float input_scale,
                                     std::int64_t k) {
  CHECK(smooth_inv.empty() || smooth_inv.size() == static_cast<std::size_t>(k), "a smoother of K values");
  const float inverse = 1.0f / input_scale;
  std::vector<float> multiplier(static_cast<std::size_t>(k), inverse);
  for (std::size_t i = 0; i < smooth_inv.size(); ++i) multiplier[i] = smooth_inv[i] * inverse;
  return multiplier;
}

NotFinite quantize_per_token(ExecContext& context, const QuantizePerTokenArgs& args) {
  if (context.gpu != nullptr) {
    quantize_per_token_cuda(*context.gpu, args);
    return {};
  }
  if (runs_reference(context)) return quantize_per_token_reference(args);
  const auto run = quantize_lane(context.isa).per_token;
  return over_rows(context, args.m, args.k,
                   [&](std::int64_t m0, std::int64_t m1, int) { return run(args, m0, m1); });
}

NotFinite quantize_static(ExecContext& context, const QuantizeStaticArgs& args) {
  if (context.gpu != nullptr) {
    quantize_static_cuda(*context.gpu, args);
    return {};
  }
  if (runs_reference(context)) return quantize_static_reference(args);
  const auto run = quantize_lane(context.isa).fixed;
  return over_rows(context, args.m, args.k,
                   [&](std::int64_t m0, std::int64_t m1, int) { return run(args, m0, m1); });
}

void layer_norm_quant_reserve(ExecContext& context, std::int64_t d) {
  if (context.gpu != nullptr || runs_reference(context)) return;
  for (int thread = 0; thread < context.pool->threads(); ++thread) {
    context.pool->scratch(thread, static_cast<std::size_t>(d) * sizeof(float));
  }
}

NotFinite layer_norm_quant(ExecContext& context, const LayerNormQuantArgs& args) {
  if (context.gpu != nullptr) {
    layer_norm_quant_cuda(*context.gpu, args);
    return {};
  }
  if (runs_reference(context)) return layer_norm_quant_reference(args);
  const auto run = layer_norm_quant_lane(context.isa).run;
  return over_rows(context, args.m, args.d, [&](std::int64_t m0, std::int64_t m1, int thread) {
    const auto normal = context.pool->scratch(thread, static_cast<std::size_t>(args.d) * sizeof(float));
    return run(args, m0, m1, reinterpret_cast<float*>(normal.data()));
  });
}

}  // namespace oasr::kernels
