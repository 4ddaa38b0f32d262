#include "kernels/conv2d/cuda.h"
#include "kernels/cuda/gather.cuh"
#include "kernels/linear/cuda.h"

namespace oasr::kernels {
namespace {

struct Same {
  __device__ float operator()(float value, int, std::int64_t) const { return value; }
};

}  // namespace

void conv2d_cuda(Gpu& gpu, const Conv2dArgs& args, Arithmetic arithmetic) {
  const std::int64_t ld = (args.geometry.k() + 3) / 4 * 4;
  cuda::over_fields<float>(gpu, "conv2d", args.geometry, args.x, ld, Same{},
                           [&](std::int64_t first, std::int64_t count, const float* fields) {
                             linear_cuda(gpu,
                                         {.x = fields,
                                          .ldx = ld,
                                          .m = count,
                                          .weight = args.weight,
                                          .bias = args.bias,
                                          .activation = args.activation,
                                          .y = args.y + first * args.ldy,
                                          .ldy = args.ldy},
                                         arithmetic, first);
                           });
}

}  // namespace oasr::kernels
