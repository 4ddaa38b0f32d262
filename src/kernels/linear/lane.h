// linear() for any instruction set: the template that the files cpu_*.cc instantiate.
#pragma once

#include "kernels/linear/op.h"
#include "kernels/simd/activate.h"
#include "kernels/simd/several.h"
#include "kernels/simd/tile.h"

namespace oasr::kernels {

template <class S>
class LinearLaneOf {
  using V = typename S::V;
  static constexpr std::int64_t kPanel = PackedWeight::kPanel;
  static constexpr int kVectors = static_cast<int>(kPanel) / S::kWidth;  // of a panel
  // Up to this many rows, weights are widened as they are loaded; above, once for all rows.
  static constexpr std::int64_t kDirectRows = 2 * S::kMaxRows;
  // A block of a panel, kBlockK deep, fits in the first-level cache; the rows that share it, in the
  // second, and their sums are kept between blocks of k.
  static constexpr std::int64_t kBlockK = 192;
  static constexpr std::int64_t kMostRows = 96, kFewestRows = 48;
  static constexpr std::int64_t kBlockFloats = 98'304;
  // Up to this k the sums never leave the registers, if what follows them is simple: writing y is what takes
  // the time (the stem of a subsampling convolution has k 9).
  static constexpr std::int64_t kShallow = 32;
  static_assert(kMostRows % S::kMaxRows == 0 && kFewestRows % S::kMaxRows == 0);

 public:
  static void run(const LinearArgs& args, std::int64_t m0, std::int64_t m1, std::int64_t p0,
                  std::int64_t p1) {
    const std::byte* data = args.weight->data();
    if (args.weight->storage() == DType::f16) {
      run_as(args, reinterpret_cast<const Half*>(data), m0, m1, p0, p1);
    } else if (args.weight->storage() == DType::bf16) {
      run_as(args, reinterpret_cast<const BFloat16*>(data), m0, m1, p0, p1);
    } else {
      run_as(args, reinterpret_cast<const float*>(data), m0, m1, p0, p1);
    }
  }

 private:
  template <class T>
  static void run_as(const LinearArgs& args, const T* weight, std::int64_t m0, std::int64_t m1,
                     std::int64_t p0, std::int64_t p1) {
    if (args.weight->k() <= kShallow && args.residual == nullptr &&
        (args.activation == Activation::none || args.activation == Activation::relu)) {
      for (std::int64_t m = m0; m < m1; m += S::kMaxRows) {
        const int rows = static_cast<int>(m1 - m < S::kMaxRows ? m1 - m : S::kMaxRows);
        with_rows<S::kMaxRows>(rows, [&](auto r) { shallow<r.value>(args, weight, m, p0, p1); });
      }
      return;
    }
    if (m1 - m0 <= kDirectRows) {
      for (std::int64_t m = m0; m < m1; m += S::kMaxRows) {
        const int rows = static_cast<int>(m1 - m < S::kMaxRows ? m1 - m : S::kMaxRows);
        with_rows<S::kMaxRows>(rows, [&](auto r) { direct<r.value>(args, weight, m, p0, p1); });
      }
      return;
    }
    const std::int64_t fit = kBlockFloats / args.weight->k() / S::kMaxRows * S::kMaxRows;
    const std::int64_t block = fit < kFewestRows ? kFewestRows : (fit > kMostRows ? kMostRows : fit);
    for (std::int64_t m = m0; m < m1; m += block) {
      const std::int64_t end = m1 - m < block ? m1 : m + block;
      for (std::int64_t p = p0; p < p1; ++p) blocked(args, weight, m, end, p);
    }
  }

  // Few k: the epilogue is computed in the registers of the tile.
  template <int kRows, class T>
  static void shallow(const LinearArgs& args, const T* weight, std::int64_t m, std::int64_t p0, std::int64_t p1) {
    const std::int64_t k = args.weight->k();
    for (std::int64_t p = p0; p < p1; ++p) {
      const std::int64_t column = p * kPanel;
      if (args.weight->n() - column < kPanel) {
        direct_panels<kRows, 1>(args, weight, m, p);
        continue;
      }
      for (int v = 0; v < kVectors; v += 2) {
        Tile<S, kRows, 1, 2> tile;
        tile.zero();
        tile.multiply(args.x + m * args.ldx, args.ldx, weight + p * k * kPanel + v * S::kWidth, kPanel, 0, k);
        if (args.bias != nullptr) {
          const float* bias = args.bias + column + v * S::kWidth;
          const V first = S::load(bias), second = S::load(bias + S::kWidth);
          tile.map([&](V value, int at) { return S::add(value, at == 0 ? first : second); });
        }
        if (args.activation == Activation::relu) {
          const V zero = S::set(0.0f);
          tile.map([&](V value, int) { return S::max(zero, value); });
        }
        tile.store(args.y + m * args.ldy + column + v * S::kWidth, args.ldy);
      }
    }
  }

  // Few rows: bound by the memory of the weights. Several panels are read at once, so that one
  // row has enough independent chains and streams.
  template <int kRows, class T>
  static void direct(const LinearArgs& args, const T* weight, std::int64_t m, std::int64_t p0,
                     std::int64_t p1) {
    constexpr int kFit = S::kRegisters / (kRows * kVectors);
    constexpr int kPanels = kFit >= 4 ? 4 : (kFit >= 2 ? 2 : 1);
    for (; p0 + kPanels <= p1; p0 += kPanels) direct_panels<kRows, kPanels>(args, weight, m, p0);
    for (; p0 < p1; ++p0) direct_panels<kRows, 1>(args, weight, m, p0);
  }

  template <int kRows, int kPanels, class T>
  static void direct_panels(const LinearArgs& args, const T* weight, std::int64_t m,
                            std::int64_t panel) {
    const std::int64_t k = args.weight->k();
    const std::int64_t size = k * kPanel;
    // As many vectors of a panel as the registers hold; all of them when they do.
    constexpr int kAcross = kRows * kPanels * kVectors <= S::kRegisters ? kVectors : 2;
    alignas(64) float sums[kRows * kPanels * kPanel];
    for (int v = 0; v < kVectors; v += kAcross) {
      Tile<S, kRows, kPanels, kAcross> tile;
      tile.zero();
      tile.multiply(args.x + m * args.ldx, args.ldx, weight + panel * size + v * S::kWidth, kPanel,
                    size, k);
      tile.store(sums + v * S::kWidth, kPanels * kPanel, kPanel);
    }
    for (int p = 0; p < kPanels; ++p) {
      finish(args, sums + p * kPanel, kPanels * kPanel, m, m + kRows, panel + p);
    }
  }

  // Many rows: bound by arithmetic. A block of the panel stays in the first-level cache for all
  // rows; the sums wait in memory for the next block of k.
  template <class T>
  static void blocked(const LinearArgs& args, const T* weight, std::int64_t m0, std::int64_t m1,
                      std::int64_t panel) {
    alignas(64) float widened[kBlockK * kPanel];
    alignas(64) float sums[kMostRows * kPanel];
    const std::int64_t k = args.weight->k();
    for (std::int64_t k0 = 0; k0 < k; k0 += kBlockK) {
      const std::int64_t count = k - k0 < kBlockK ? k - k0 : kBlockK;
      const T* from = weight + (panel * k + k0) * kPanel;
      const float* w = widen(from, count * kPanel, widened);
      // Blocks follow each other in memory, over panels too: the row tiles fetch the next one, a
      // part each. (At the very end they name memory after the weight, which is harmless.)
      const auto* next = reinterpret_cast<const char*>(from + count * kPanel);
      std::int64_t part = 0;
      for (std::int64_t m = m0; m < m1; m += S::kMaxRows) {
        const int rows = static_cast<int>(m1 - m < S::kMaxRows ? m1 - m : S::kMaxRows);
        const float* x = args.x + m * args.ldx + k0;
        with_rows<S::kMaxRows>(rows, [&](auto r) {
          block<r.value>(x, args.ldx, w, count, k0 > 0, next + part, sums + (m - m0) * kPanel);
        });
        part = (part + count * 64) % (count * kPanel * std::int64_t{sizeof(T)});
      }
    }
    finish(args, sums, kPanel, m0, m1, panel);
  }

  template <int kRows>
  static void block(const float* x, std::int64_t ldx, const float* w, std::int64_t count,
                    bool resume, const char* next, float* sums) {
    for (int v = 0; v < kVectors; v += 2) {
      Tile<S, kRows, 1, 2> tile;
      if (resume) {
        tile.load(sums + v * S::kWidth, kPanel);
      } else {
        tile.zero();
      }
      tile.multiply(x, ldx, w + v * S::kWidth, kPanel, 0, count, next);
      tile.store(sums + v * S::kWidth, kPanel);
    }
  }

  static const float* widen(const float* from, std::int64_t, float*) { return from; }
  template <class T>
  static const float* widen(const T* from, std::int64_t count, float* to) {
    for (std::int64_t i = 0; i < count; i += S::kWidth) S::store(to + i, S::load(from + i));
    return to;
  }

  // y = alpha · act(sum + bias) + residual for one panel of rows [m0, m1); the sums are overwritten.
  static void finish(const LinearArgs& args, float* sums, std::int64_t stride, std::int64_t m0,
                     std::int64_t m1, std::int64_t panel) {
    const std::int64_t left = args.weight->n() - panel * kPanel;
    const std::int64_t columns = left < kPanel ? left : kPanel;
    const std::int64_t rows = m1 - m0;
    for (std::int64_t r = 0; r < rows && args.bias != nullptr; ++r) {
      add_bias(args.bias + panel * kPanel, columns, sums + r * stride);
    }
    using Group = Several<S, kVectors < 4 ? kVectors : 4>;  // divides a panel
    if (stride == kPanel) {
      Activate<Group>::run(args.activation, sums, rows * kPanel);  // one loop: the constants stay in registers
    } else {
      for (std::int64_t r = 0; r < rows; ++r) Activate<Group>::run(args.activation, sums + r * stride, kPanel);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t m = m0 + r;
      const float* residual =
          args.residual != nullptr ? args.residual + m * args.ldr + panel * kPanel : nullptr;
      write(sums + r * stride, residual, args.alpha, columns, args.y + m * args.ldy + panel * kPanel);
    }
  }

  static void add_bias(const float* bias, std::int64_t columns, float* sum) {
    for (std::int64_t n = 0; n < columns; n += S::kWidth) {
      S::store(sum + n, S::add(S::load(sum + n), S::load_first(bias + n, count(columns - n))));
    }
  }

  static void write(const float* sum, const float* residual, float alpha, std::int64_t columns,
                    float* y) {
    const typename S::V factor = S::set(alpha);
    for (std::int64_t n = 0; n < columns; n += S::kWidth) {
      const int elements = count(columns - n);
      typename S::V value = S::load(sum + n);
      if (residual != nullptr) value = S::fma(factor, value, S::load_first(residual + n, elements));
      S::store_first(y + n, value, elements);
    }
  }

  static int count(std::int64_t left) {
    return left < S::kWidth ? static_cast<int>(left) : S::kWidth;
  }
};

}  // namespace oasr::kernels
