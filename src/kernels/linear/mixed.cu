#include "base/check.h"
#include "kernels/cuda/aligned.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/linear/cuda.h"
#include "kernels/linear/mixed_few_rows.cuh"
#include "kernels/linear/mixed_tiles.cuh"

namespace oasr::kernels {
namespace {

using cuda::divide_up;
using cuda::MixedProblem;

template <class E, class T, class Shape>
void run_panels(Gpu& gpu, const MixedProblem& problem) {
  const cuda::Grid grid{.x = divide_up(problem.of.n, Shape::kPanel),
                        .y = divide_up(problem.of.args.m, Shape::kRows)};
  cuda::launch(gpu, "linear", cuda::mixed_few_rows<E, T, Shape>, grid, 32, Shape::kShared, problem);
}

template <class E, class T>
void run_few_rows(Gpu& gpu, const MixedProblem& problem) {
  constexpr int kSmall = 2048, kLarge = 8192;
  constexpr std::int64_t kRows = cuda::MixedFewRows<T, kSmall>::kRows, kMost = 65'535;  // blocks of a grid
  CHECK(problem.of.args.m <= kMost * kRows, "few rows");
  const std::int64_t blocks = divide_up(problem.of.n, PackedWeight::kPanel) * divide_up(problem.of.args.m, kRows);
  // Few blocks need larger pieces to keep memory busy.
  if (blocks <= gpu.info().multiprocessors) {
    return run_panels<E, T, cuda::MixedFewRows<T, kLarge>>(gpu, problem);
  }
  return run_panels<E, T, cuda::MixedFewRows<T, kSmall>>(gpu, problem);
}

template <class E, class T, int kN>
void run_tiles(Gpu& gpu, const MixedProblem& problem) {
  using Shape = cuda::MixedShape<T, kN>;
  const std::int64_t tiles_m = divide_up(problem.of.args.m, Shape::kM), tiles_n = divide_up(problem.of.n, kN);
  cuda::launch(gpu, "linear", cuda::mixed_tiles<E, T, Shape>, {.x = tiles_m * tiles_n}, Shape::kThreads,
               Shape::kShared, problem, tiles_m);
}

template <class E, class T>
void run(Gpu& gpu, const MixedProblem& problem, MixedTile tile) {
  switch (tile) {
    case MixedTile::few_rows:
      return run_few_rows<E, T>(gpu, problem);
    case MixedTile::m64n64:
      return run_tiles<E, T, 64>(gpu, problem);
    case MixedTile::m64n128:
      return run_tiles<E, T, 128>(gpu, problem);
  }
}

template <class E>
void run(Gpu& gpu, const MixedProblem& problem, MixedTile tile) {
  switch (problem.of.args.weight->storage()) {
    case DType::f16:
      return run<E, Half>(gpu, problem, tile);
    case DType::bf16:
      return run<E, BFloat16>(gpu, problem, tile);
    default:
      return run<E, float>(gpu, problem, tile);
  }
}

}  // namespace

MixedTile mixed_tile(std::int64_t m, std::int64_t n, int multiprocessors) {
  if (m <= 16) return MixedTile::few_rows;
  const std::int64_t down = divide_up(m, 64);
  if (2 * down * divide_up(n, 128) >= multiprocessors) return MixedTile::m64n128;
  return 2 * down * divide_up(n, 64) >= multiprocessors ? MixedTile::m64n64 : MixedTile::few_rows;
}

void linear_mixed_cuda(Gpu& gpu, const LinearArgs& args, Arithmetic arithmetic, MixedTile tile,
                       std::int64_t first_row) {
  if (args.m == 0) return;
  const MixedProblem problem{.of = {.args = args,
                                    .weight = args.weight->data(),
                                    .n = args.weight->n(),
                                    .k = args.weight->k(),
                                    .x_vectors = cuda::aligned(args.x, args.ldx),
                                    .y_vectors = cuda::aligned(args.y, args.ldy) && cuda::aligned(args.bias, 0) &&
                                                 cuda::aligned(args.residual, args.ldr)},
                             .not_finite = gpu.not_finite_row(),
                             .first_row = first_row};
  CHECK(arithmetic != Arithmetic::float32, "an arithmetic of the matrix units");
  if (arithmetic == Arithmetic::float16) return run<Half>(gpu, problem, tile);
  run<BFloat16>(gpu, problem, tile);
}

}  // namespace oasr::kernels
