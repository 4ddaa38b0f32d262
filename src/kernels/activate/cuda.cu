#include "kernels/activate/cuda.h"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/exact.cuh"
#include "kernels/cuda/launch.cuh"

namespace oasr::kernels {
namespace {

template <Activation kActivation>
__global__ void activate_element(ActivateRowsArgs args) {
  cuda::in_order();
  const auto [m, d] = cuda::element();
  if (m >= args.m || d >= args.d) return;
  float& x = args.x[m * args.ldx + d];
  x = cuda::activate<kActivation>(x);
}

// In place a thread writes what it alone has read: the gates stay.
__global__ void gate_element(GluArgs args) {
  cuda::in_order();
  const auto [row, d] = cuda::element();
  if (row >= args.head_rows + args.m || d >= args.d) return;
  float& y = args.y[row * args.ldy + d];
  if (row < args.head_rows) {
    y = args.head[row * args.ld_head + d];
    return;
  }
  const float* x = args.x + (row - args.head_rows) * args.ldx + d;
  y = __fmul_rn(x[0], cuda::sigmoid(x[args.d]));
}

template <Activation kActivation>
void run(Gpu& gpu, const ActivateRowsArgs& args) {
  cuda::launch(gpu, "activate_rows", activate_element<kActivation>, cuda::elements(args.m, args.d),
               cuda::kElementThreads, 0, args);
}

}  // namespace

void activate_rows_cuda(Gpu& gpu, const ActivateRowsArgs& args) {
  switch (args.activation) {
    case Activation::none:
      return;
    case Activation::gelu:
      return run<Activation::gelu>(gpu, args);
    case Activation::swish:
      return run<Activation::swish>(gpu, args);
    case Activation::relu:
      return run<Activation::relu>(gpu, args);
    case Activation::tanh:
      return run<Activation::tanh>(gpu, args);
  }
}

void glu_cuda(Gpu& gpu, const GluArgs& args) {
  cuda::launch(gpu, "glu", gate_element, cuda::elements(args.head_rows + args.m, args.d), cuda::kElementThreads, 0, args);
}

}  // namespace oasr::kernels
