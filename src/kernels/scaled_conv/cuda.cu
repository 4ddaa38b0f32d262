#include "base/check.h"
#include "kernels/cuda/gather.cuh"
#include "kernels/cuda/int8.cuh"
#include "kernels/scaled_conv/cuda.h"
#include "kernels/scaled_mm/blocks.h"
#include "kernels/scaled_mm/cuda.h"

namespace oasr::kernels {
namespace {

struct Same {
  __device__ std::int8_t operator()(std::int8_t value, int, std::int64_t) const { return value; }
};
struct Quantize {
  const float* multiplier;
  std::int32_t* not_finite;
  __device__ std::int8_t operator()(float value, int i, std::int64_t row) const {
    if (cuda::is_finite(value)) return cuda::to_int8(__fmul_rn(value, multiplier[i]));
    cuda::report_row(not_finite, row);
    return 0;
  }
};

template <class Args, class Convert>
void run(Gpu& gpu, const Args& args, const FloatOutput& out, Convert convert, ScaledMMBackend backend) {
  CHECK(args.weight->k() == args.geometry.k(), "a weight of these taps and channels");
  const std::int64_t ld = (args.geometry.k() + 15) / 16 * 16;
  cuda::over_fields<std::int8_t>(gpu, "scaled_conv", args.geometry, args.x, ld, convert,
                                 [&](std::int64_t first, std::int64_t count, const std::int8_t* fields) {
                                   scaled_mm_cuda(
                                       gpu,
                                       ScaledMMArgs{.a = fields,
                                                    .lda = ld,
                                                    .a_scale = ActivationScale::per_tensor(args.x_scale),
                                                    .m = count,
                                                    .weight = args.weight,
                                                    .bias = args.bias,
                                                    .activation = args.activation},
                                       from_row(out, first), backend);
                                 });
}

}  // namespace

void scaled_conv_cuda(Gpu& gpu, const ScaledConvArgs& args, const FloatOutput& out, ScaledMMBackend backend) {
  run(gpu, args, out, Same{}, backend);
}
void scaled_conv_cuda(Gpu& gpu, const StaticScaledConvArgs& args, const FloatOutput& out, ScaledMMBackend backend) {
  run(gpu, args, out, Quantize{args.multiplier, gpu.not_finite_row()}, backend);
}

}  // namespace oasr::kernels
