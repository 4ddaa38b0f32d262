#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "decode/scores.h"
#include "kernels/quantize/first_row.h"
#include "kernels/rows/cuda.h"
#include "kernels/rows/op.h"

namespace oasr::kernels {
namespace {

// Calls body(m0, m1) for blocks of rows, on all threads.
template <class F>
void by_rows(ExecContext& context, ConstMatrix x, F body) {
  constexpr std::int64_t kItem = 16'000;  // elements: below, an item is not worth a hand-out
  const std::int64_t rows = std::max<std::int64_t>(1, kItem / std::max<std::int64_t>(1, x.columns));
  context.pool->parallel_for((x.rows + rows - 1) / rows, [&](std::int64_t item, int) {
    body(item * rows, std::min(x.rows, (item + 1) * rows));
  });
}

void check_rows(std::span<const std::int32_t> numbers, std::int64_t least, std::int64_t rows) {
  for (const std::int32_t number : numbers)
    CHECK(number >= least && number < rows, "the number of a row that is there");
}

}  // namespace

void embed_rows(ExecContext& context, const EmbedRowsArgs& args) {
  const Matrix& y = args.y;
  const auto count = static_cast<std::int64_t>(args.tokens.size());
  CHECK(y.rows == count && y.columns == args.table->k(), "a row of the table for every token");
  check_rows(args.tokens, 0, args.table->n());
  if (!args.positions.empty()) {
    CHECK(args.positions.size() == args.tokens.size() && args.position_table.columns == y.columns,
          "a position for every token");
    check_rows(args.positions, 0, args.position_table.rows);
  }
  if (context.gpu != nullptr) return embed_rows_cuda(*context.gpu, args);
  for (std::int64_t i = 0; i < count; ++i) {
    float* to = y.row(i);
    const auto at = static_cast<std::size_t>(i);
    args.table->unpack_row(args.tokens[at], {to, static_cast<std::size_t>(y.columns)});
    for (std::int64_t d = 0; d < y.columns; ++d) to[d] *= args.scale;
    if (args.positions.empty()) continue;
    const float* position = args.position_table.row(args.positions[at]);
    for (std::int64_t d = 0; d < y.columns; ++d) to[d] += position[d];
  }
}

void gather_rows(ExecContext& context, ConstMatrix x, std::span<const std::int32_t> rows, Matrix y) {
  CHECK(y.rows == static_cast<std::int64_t>(rows.size()) && y.columns == x.columns, "a row for every number");
  check_rows(rows, kZeroRow, x.rows);
  if (context.gpu != nullptr) return gather_rows_cuda(*context.gpu, x, rows, y);
  by_rows(context, y, [&](std::int64_t m0, std::int64_t m1) {
    for (std::int64_t m = m0; m < m1; ++m) {
      const std::int32_t row = rows[static_cast<std::size_t>(m)];
      if (row == kZeroRow) {
        std::fill_n(y.row(m), y.columns, 0.0f);
      } else {
        std::copy_n(x.row(row), y.columns, y.row(m));
      }
    }
  });
}

void shift_scale_rows(ExecContext& context, const ShiftScaleRowsArgs& args) {
  CHECK(args.x.rows == args.y.rows && args.x.columns == args.y.columns, "matrices of one shape");
  if (context.gpu != nullptr) return shift_scale_rows_cuda(*context.gpu, args);
  by_rows(context, args.x, [&](std::int64_t m0, std::int64_t m1) {
    for (std::int64_t m = m0; m < m1; ++m) {
      const float* x = args.x.row(m);
      float* y = args.y.row(m);
      for (std::int64_t d = 0; d < args.x.columns; ++d) {
        const float shifted = args.shift != nullptr ? x[d] + args.shift[d] : x[d];
        y[d] = shifted * (args.scale != nullptr ? args.scale[d] : args.factor);
      }
    }
  });
}

void transpose_in(ExecContext& context, std::span<const float> x, Matrix y) {
  CHECK(static_cast<std::int64_t>(x.size()) == y.rows * y.columns, "a matrix [columns, rows]");
  if (context.gpu != nullptr) return transpose_in_cuda(*context.gpu, x, y);
  constexpr std::int64_t kTile = 32;  // rows that stay in the first-level cache
  for (std::int64_t first = 0; first < y.rows; first += kTile) {
    const std::int64_t end = std::min(y.rows, first + kTile);
    for (std::int64_t d = 0; d < y.columns; ++d) {
      const float* from = x.data() + d * y.rows;
      for (std::int64_t m = first; m < end; ++m) y.row(m)[d] = from[m];
    }
  }
}

void to_host(ExecContext& context, ConstMatrix x, std::span<float> out) {
  CHECK(static_cast<std::int64_t>(out.size()) == x.rows * x.columns, "room for all rows");
  if (context.gpu != nullptr) return to_host_cuda(*context.gpu, x, out);
  if (x.data == out.data()) {
    CHECK(x.stride == x.columns || x.rows <= 1, "rows without gaps where they stay in place");
    return;
  }
  for (std::int64_t m = 0; m < x.rows; ++m) std::copy_n(x.row(m), x.columns, out.data() + m * x.columns);
}

NotFinite first_not_finite(ExecContext& context, ConstMatrix x) {
  if (context.gpu != nullptr) {
    first_not_finite_cuda(*context.gpu, x);
    return {};
  }
  FirstRow first;
  by_rows(context, x, [&](std::int64_t m0, std::int64_t m1) {
    for (std::int64_t m = m0; m < m1; ++m) {
      if (decode::all_finite({x.row(m), static_cast<std::size_t>(x.columns)})) continue;
      return first.merge({m});
    }
  });
  return first.value();
}

}  // namespace oasr::kernels
