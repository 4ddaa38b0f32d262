#include "kernels/cuda/aligned.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/linear/cuda.h"
#include "kernels/linear/few_rows.cuh"
#include "kernels/linear/tiles.cuh"

namespace oasr::kernels {
namespace {

using cuda::divide_up;
using cuda::LinearProblem;
using M64N64 = cuda::FloatTile<2, 1, 5>;
using M128N64 = cuda::FloatTile<4, 1, 3>;

template <class Shape, class T, bool kVector>
void run_panels(Gpu& gpu, const LinearProblem& problem) {
  const cuda::Grid grid{.x = divide_up(problem.n, Shape::kPanel),
                        .y = divide_up(problem.args.m, Shape::kRows)};
  cuda::launch(gpu, "linear", cuda::few_rows_product<Shape, T, kVector>, grid, 32, Shape::kShared, problem);
}

// Rows are put together as far as every multiprocessor still gets some blocks: the chain of a sum is as long
// as it is, and more sums a lane make it slower. Few blocks need larger pieces to keep memory busy.
template <class T, bool kVector>
void run_few_rows(Gpu& gpu, const LinearProblem& problem) {
  constexpr int kSmall = 2048, kLarge = 8192;
  const std::int64_t panels = divide_up(problem.n, PackedWeight::kPanel), m = problem.args.m;
  const std::int64_t enough = 4 * gpu.info().multiprocessors;
  if (panels * m <= enough) return run_panels<cuda::FewRows<T, 1, kLarge>, T, kVector>(gpu, problem);
  if (m == 1) return run_panels<cuda::FewRows<T, 1, kSmall>, T, kVector>(gpu, problem);
  if (panels * divide_up(m, 4) <= enough || m <= 4) {
    return run_panels<cuda::FewRows<T, 4, kSmall>, T, kVector>(gpu, problem);
  }
  return run_panels<cuda::FewRows<T, 8, kSmall>, T, kVector>(gpu, problem);
}

template <class Tile, class T, bool kVector>
void run_tiles(Gpu& gpu, const LinearProblem& problem) {
  const std::int64_t tiles_m = divide_up(problem.args.m, Tile::kM), tiles_n = divide_up(problem.n, Tile::kN);
  cuda::launch(gpu, "linear", cuda::tile_product<Tile, T, kVector>, {.x = tiles_m * tiles_n}, Tile::kThreads,
               0, problem, tiles_m);
}

template <class T, bool kVector>
void run(Gpu& gpu, const LinearProblem& problem, LinearTile tile) {
  switch (tile) {
    case LinearTile::few_rows:
      return run_few_rows<T, kVector>(gpu, problem);
    case LinearTile::m64n64:
      return run_tiles<M64N64, T, kVector>(gpu, problem);
    case LinearTile::m128n64:
      return run_tiles<M128N64, T, kVector>(gpu, problem);
  }
}

template <class T>
void run(Gpu& gpu, const LinearProblem& problem, LinearTile tile) {
  return problem.x_vectors ? run<T, true>(gpu, problem, tile) : run<T, false>(gpu, problem, tile);
}

}  // namespace

LinearTile linear_tile(std::int64_t m, std::int64_t n, int multiprocessors) {
  // A tile alone on a multiprocessor waits most of the time; panels of 8 rows then are faster.
  if (m <= 96 || divide_up(m, 64) * divide_up(n, 64) < multiprocessors) return LinearTile::few_rows;
  return divide_up(m, 128) * divide_up(n, 64) >= 2 * multiprocessors ? LinearTile::m128n64
                                                                     : LinearTile::m64n64;
}

void linear_cuda(Gpu& gpu, const LinearArgs& args, LinearTile tile) {
  if (args.m == 0) return;
  const LinearProblem problem{.args = args,
                              .weight = args.weight->data(),
                              .n = args.weight->n(),
                              .k = args.weight->k(),
                              .x_vectors = cuda::aligned(args.x, args.ldx),
                              .y_vectors = cuda::aligned(args.y, args.ldy) && cuda::aligned(args.bias, 0) &&
                                           cuda::aligned(args.residual, args.ldr)};
  switch (args.weight->storage()) {
    case DType::f16:
      return run<Half>(gpu, problem, tile);
    case DType::bf16:
      return run<BFloat16>(gpu, problem, tile);
    default:
      return run<float>(gpu, problem, tile);
  }
}

void linear_cuda(Gpu& gpu, const LinearArgs& args, Arithmetic arithmetic, std::int64_t first_row) {
  const std::int64_t m = args.m, n = args.weight->n();
  const int multiprocessors = gpu.info().multiprocessors;
  if (arithmetic == Arithmetic::float32) return linear_cuda(gpu, args, linear_tile(m, n, multiprocessors));
  linear_mixed_cuda(gpu, args, arithmetic, mixed_tile(m, n, multiprocessors), first_row);
}

}  // namespace oasr::kernels
