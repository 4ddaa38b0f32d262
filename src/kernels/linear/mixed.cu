#include <algorithm>

#include "base/check.h"
#include "device/memory.h"
#include "kernels/cuda/aligned.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/linear/cuda.h"
#include "kernels/linear/mixed_few_rows.cuh"
#include "kernels/linear/mixed_round.cuh"
#include "kernels/linear/mixed_tiles.cuh"

namespace oasr::kernels {
namespace {

using cuda::divide_up;
using cuda::MixedProblem;
using cuda::MixedRows;

template <class E, class T, class Shape>
void run_panels(Gpu& gpu, const MixedProblem& problem) {
  const std::int64_t m = problem.of.args.m;
  CHECK(m <= 65'535 * Shape::kRows, "few rows");  // blocks of a grid
  const std::int64_t pieces = divide_up(problem.of.k, cuda::kMixedPiece),
                     rounds = divide_up(pieces, Shape::kWarps);
  const std::int64_t warps = divide_up(pieces, rounds);
  const std::int64_t sums = (warps + (rounds > 1 ? 1 : 0)) * Shape::kSums;
  cuda::launch(gpu, "linear", cuda::mixed_few_rows<E, T, Shape>,
               {.x = divide_up(problem.of.n, Shape::kWidth), .y = divide_up(m, Shape::kRows)},
               static_cast<unsigned>(32 * warps), static_cast<std::size_t>(sums) * sizeof(float), problem);
}

template <class E, class T, int kRows>
void run_few_rows(Gpu& gpu, const MixedProblem& problem) {
  // Blocks of few channels, where those of more would leave multiprocessors without any.
  const std::int64_t blocks = divide_up(problem.of.n, 32) * divide_up(problem.of.args.m, kRows);
  if (blocks < 2 * gpu.info().multiprocessors) {
    return run_panels<E, T, cuda::MixedFewRows<E, T, kRows, 2>>(gpu, problem);
  }
  return run_panels<E, T, cuda::MixedFewRows<E, T, kRows, 4>>(gpu, problem);
}

// Memory of the queue for rows as operands. Not its scratch memory: there x may lie.
std::uint16_t* operand_memory(Gpu& gpu, std::size_t bytes) {
  std::shared_ptr<void>& kept = gpu.attached("mixed rows");
  if (kept == nullptr) kept = std::make_shared<Memory>();
  auto& memory = *static_cast<Memory*>(kept.get());
  if (memory.size() < bytes) {
    memory = Memory();
    memory = Memory(&gpu, bytes);
  }
  return reinterpret_cast<std::uint16_t*>(memory.data());
}

// How rows of x lie as operands. Rows that follow each other or overlap, as those of a convolution, stay so.
struct OperandLayout {
  OperandLayout(const LinearArgs& args, std::int64_t k)
      : together(args.ldx <= k && args.ldx % 8 == 0), ld(together ? args.ldx : divide_up(k, 8) * 8) {}
  bool together;
  std::int64_t ld;
};

// Makes operands of x in the memory of the queue.
template <class E>
MixedRows round_x(Gpu& gpu, const LinearArgs& args, std::int64_t k, const OperandLayout& layout) {
  constexpr std::int64_t kColumns = 256;  // of a row of those that are together
  const std::int64_t together = (args.m - 1) * args.ldx + k,
                     numbers = layout.together ? together : args.m * layout.ld;
  cuda::MixedRounding rounding{
      .x = args.x,
      .ld = args.ldx,
      .rows = args.m,
      .columns = k,
      .last = k,
      .vectors = cuda::aligned(args.x, args.ldx),
      .to = operand_memory(gpu, static_cast<std::size_t>(divide_up(numbers, 8) * 16)),
      .to_ld = layout.ld};
  if (layout.together) {
    rounding.ld = rounding.to_ld = rounding.columns = kColumns;
    rounding.rows = divide_up(together, kColumns);
    rounding.last = together - (rounding.rows - 1) * kColumns;
  }
  cuda::launch(gpu, "linear", cuda::mixed_round<E>,
               cuda::elements(rounding.rows, divide_up(rounding.columns, 8)), cuda::kElementThreads, 0,
               rounding);
  return {.x = rounding.to, .ld = layout.ld};
}

template <class E, class Shape, class T>
void run_tiles(Gpu& gpu, const MixedProblem& problem) {
  // As many rows at a time as leave the memory for operands small.
  constexpr std::int64_t kBytes = 32 << 20;
  const LinearArgs& all = problem.of.args;
  const OperandLayout layout(all, problem.of.k);
  const std::int64_t most = std::max<std::int64_t>(kBytes / (layout.ld * 2) / Shape::kM, 1) * Shape::kM;
  for (std::int64_t first = 0; first < all.m; first += most) {
    MixedProblem part = problem;
    part.first_row += first;
    LinearArgs& args = part.of.args;
    args.m = std::min(most, all.m - first);
    args.x += first * all.ldx;
    args.y += first * all.ldy;
    if (args.residual != nullptr) args.residual += first * all.ldr;
    const MixedRows rows = round_x<E>(gpu, args, problem.of.k, layout);
    const std::int64_t tiles_m = divide_up(args.m, Shape::kM), tiles_n = divide_up(problem.of.n, Shape::kN);
    cuda::launch(gpu, "linear", cuda::mixed_tiles<E, T, Shape>, {.x = tiles_m * tiles_n}, Shape::kThreads,
                 Shape::kShared, part, rows, tiles_m);
  }
}

template <class E, class T>
void run(Gpu& gpu, const MixedProblem& problem, MixedTile tile) {
  switch (tile) {
    case MixedTile::few_rows:
      return problem.of.args.m <= 8 ? run_few_rows<E, T, 8>(gpu, problem)
                                    : run_few_rows<E, T, 16>(gpu, problem);
    case MixedTile::m64n64:
      return run_tiles<E, cuda::MixedShape<T, 64, 64, 4>, T>(gpu, problem);
    case MixedTile::m128n64:
      return run_tiles<E, cuda::MixedShape<T, 128, 64, sizeof(T) == 2 ? 3 : 2>, T>(gpu, problem);
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
  const auto tiles = [&](std::int64_t rows, std::int64_t channels) {
    return divide_up(m, rows) * divide_up(n, channels);
  };
  if (m > 64 && tiles(128, 64) >= 2 * multiprocessors) return MixedTile::m128n64;
  return 2 * tiles(64, 64) >= multiprocessors ? MixedTile::m64n64 : MixedTile::few_rows;
}

void linear_mixed_cuda(Gpu& gpu, const LinearArgs& args, Arithmetic arithmetic, MixedTile tile,
                       std::int64_t first_row) {
  if (args.m == 0) return;
  const MixedProblem problem{
      .of = {.args = args,
             .weight = args.weight->data(),
             .n = args.weight->n(),
             .k = args.weight->k(),
             .x_vectors = cuda::aligned(args.x, args.ldx),
             .y_vectors = cuda::aligned(args.y, args.ldy) && cuda::aligned(args.bias, 0) &&
                          cuda::aligned(args.residual, args.ldr)},
      .not_finite = gpu.not_finite_row(),
      .first_row = first_row,
      .x_pairs = cuda::aligned(args.x, args.ldx, 8)};
  CHECK(arithmetic != Arithmetic::float32, "an arithmetic of the matrix units");
  // Kernels count a weight's numbers and those of a block of rows in 32 bits.
  CHECK(divide_up(problem.of.n, 32) * 32 * problem.of.k <= 0xffff'ffff && problem.of.k < (1 << 24) &&
            problem.of.n < (1 << 30),
        "a weight");
  if (arithmetic == Arithmetic::float16) return run<Half>(gpu, problem, tile);
  run<BFloat16>(gpu, problem, tile);
}

}  // namespace oasr::kernels
