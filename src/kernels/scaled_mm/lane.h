// scaled_mm() for any instruction set: the templates that the files cpu_*.cc instantiate.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/quantize/lane.h"
#include "kernels/scaled_mm/op.h"
#include "kernels/simd/activate.h"
#include "kernels/simd/several.h"
#include "kernels/simd/tile.h"

namespace oasr::kernels {

// From int32 sums to the output (epilogue.h) for one row of up to kMostPanels panels.
template <class S>
class ScaledMMEpilogue {
  using V = typename S::V;
  using Steps = Int8Steps<S>;
  static constexpr std::int64_t kPanel = PackedInt8Weight::kPanel;
  static constexpr std::int64_t kChunk = 6;  // rows that are activated at once

 public:
  static constexpr std::int64_t kMostPanels = 4;

  ScaledMMEpilogue(const ScaledMMArgs& args, const FloatOutput& out) : args_(args), out_(&out) {}
  ScaledMMEpilogue(const ScaledMMArgs& args, const Int8Output& out) : args_(args), quant_(&out) {}

  // Asks for the memory that rows() will write and read, to come while the sums are computed.
  void prefetch(std::int64_t m, std::int64_t count, std::int64_t panel, std::int64_t panels) const {
    const std::int64_t first = panel * kPanel, line = quant_ == nullptr ? 16 : 64;
    for (; count > 0; --count, ++m) {
      for (std::int64_t n = first; n < first + panels * kPanel; n += line) {
        if (quant_ != nullptr) {
          __builtin_prefetch(quant_->q + m * quant_->ldq + n, 1);
        } else {
          __builtin_prefetch(out_->y + m * out_->ldy + n, 1);
          if (out_->residual != nullptr) __builtin_prefetch(out_->residual + m * out_->ldr + n);
        }
      }
    }
  }

  // Rows m, m + 1, … of `count`; sums of row r start at sums + r · stride, aligned to 64 bytes.
  [[gnu::noinline]] void rows(const std::int32_t* sums, std::int64_t stride, std::int64_t m,
                              std::int64_t count, std::int64_t panel, std::int64_t panels) {
    const std::int64_t first = panel * kPanel, left = args_.weight->n() - first;
    const std::int64_t columns = left < panels * kPanel ? left : panels * kPanel;
    const bool plain = quant_ == nullptr && out_->residual == nullptr &&
                       args_.activation == Activation::none && columns % S::kWidth == 0;
    if (plain) {
      for (std::int64_t r = 0; r < count; ++r) {
        scale(sums + r * stride, args_.a_scale.of_row(m + r), first, columns,
              out_->y + (m + r) * out_->ldy + first);
      }
    } else {
      for (std::int64_t r = 0; r < count; r += kChunk) {
        chunk(sums + r * stride, stride, m + r, count - r < kChunk ? count - r : kChunk, first, columns);
      }
    }
  }
  NotFinite not_finite() const { return not_finite_; }

 private:
  static constexpr std::int64_t kColumns = kMostPanels * kPanel;

  // Up to kChunk rows, so that the activation is one loop: a row alone is too few vectors to hide the
  // latency of its polynomial.
  void chunk(const std::int32_t* sums, std::int64_t stride, std::int64_t m, std::int64_t count,
             std::int64_t first, std::int64_t columns) {
    alignas(64) float values[kChunk * kColumns];
    for (std::int64_t r = 0; r < count; ++r) {
      scale(sums + r * stride, args_.a_scale.of_row(m + r), first, columns, values + r * kColumns);
    }
    activate(values, count, columns);
    if (quant_ == nullptr) {
      for (std::int64_t r = 0; r < count; ++r) {
        const float* residual =
            out_->residual == nullptr ? nullptr : out_->residual + (m + r) * out_->ldr + first;
        write(values + r * kColumns, residual, out_->alpha, columns,
              out_->y + (m + r) * out_->ldy + first);
      }
    } else {
      round(values, m, count, first, columns);
    }
  }

  // Values after the last row and column may change, too.
  void activate(float* values, std::int64_t count, std::int64_t columns) const {
    using Group = Several<S, S::kRegisters >= 24 ? 6 : 4>;
    using Row = Several<S, 4>;
    static_assert(kChunk * kColumns % Group::kWidth == 0 && kColumns % Row::kWidth == 0);
    if (count > 1 && columns == kColumns) {
      return Activate<Group>::run(args_.activation, values, count * kColumns);
    }
    for (std::int64_t r = 0; r < count; ++r) {
      Activate<Row>::run(args_.activation, values + r * kColumns, columns);
    }
  }

  void round(const float* values, std::int64_t m, std::int64_t count, std::int64_t first,
             std::int64_t columns) {
    const float* multiplier = quant_->multiplier + first;
    for (std::int64_t r = 0; r < count; ++r) {
      const float* value = values + r * kColumns;
      std::int8_t* q = quant_->q + (m + r) * quant_->ldq + first;
      if (Steps::finite(Steps::round_row(value, multiplier, columns, q, S::set(0.0f)))) continue;
      Steps::zero_not_finite(value, columns, q);
      not_finite_.merge({m + r});
    }
  }

  // a_scale · (w_scale · sum) + bias. Scales are padded to whole panels, the bias is not.
  void scale(const std::int32_t* sums, float a_scale, std::int64_t first, std::int64_t columns,
             float* to) const {
    const float* w_scale = args_.weight->scale() + first;
    const V a = S::set(a_scale);
    const auto value = [&](std::int64_t n) {
      return S::mul(a, S::mul(S::load(w_scale + n), S::convert(sums + n)));
    };
    if (args_.bias == nullptr) {
      for (std::int64_t n = 0; n < columns; n += S::kWidth) S::store(to + n, value(n));
      return;
    }
    const float* bias = args_.bias + first;
    std::int64_t n = 0;
    for (; n + S::kWidth <= columns; n += S::kWidth) {
      S::store(to + n, S::add(value(n), S::load(bias + n)));
    }
    if (n < columns) S::store(to + n, S::add(value(n), S::load_first(bias + n, Steps::count(columns - n))));
  }

  static void write(const float* value, const float* residual, float alpha, std::int64_t columns,
                    float* y) {
    const V factor = S::set(alpha);
    for (std::int64_t n = 0; n < columns; n += S::kWidth) {
      const int elements = Steps::count(columns - n);
      V v = S::load(value + n);
      if (residual != nullptr) v = S::fma(factor, v, S::load_first(residual + n, elements));
      S::store_first(y + n, v, elements);
    }
  }

  const ScaledMMArgs& args_;
  const FloatOutput* out_ = nullptr;
  const Int8Output* quant_ = nullptr;
  NotFinite not_finite_;
};

// The lane of a processor whose dot-product instructions work on vectors. D, the dot product:
//   Simd            the vectors of the epilogue (a type of this file's own: its functions must not be
//                   shared with files of other compiler flags)
//   Element         of a prepared row
//   Weight          of a panel in a tile of many rows: int8, or wider, then there is
//                   widen(panel, k padded to quads, to)
//   kMaxRows        rows of a register tile; kMaxPanels, panels of it
//   prepare(from, k, to)       one row of int8 as Elements, to a multiple of kQuad (any padding)
//   tile<kRows, kPanels, kChains>(a, lda, b, panel_stride, quads, offset, sums, stride)
//       sums(r, n) = Σ a(r, k) · b(k, n), the offset of the weight used or not as the form needs;
//       kChains > 1 (one panel only) splits k over independent accumulators
template <class D>
class ScaledMMLaneOf {
  using Element = typename D::Element;
  using Weight = typename D::Weight;
  using Epilogue = ScaledMMEpilogue<typename D::Simd>;
  static constexpr std::int64_t kPanel = PackedInt8Weight::kPanel;
  static constexpr std::int64_t kQuad = PackedInt8Weight::kQuad;
  // Panels that the epilogue sees at once.
  static constexpr std::int64_t kGroup = Epilogue::kMostPanels;
  // Up to this many rows the weights are read once, in the order of memory.
  static constexpr int kStreamRows = 4;
  // Up to this many rows, wider weights are not worth their own pass over the panel.
  static constexpr std::int64_t kDirectRows = 2 * D::kMaxRows;

 public:
  static void run(const ScaledMMArgs& args, const FloatOutput& out, std::int64_t p0, std::int64_t p1,
                  std::byte* scratch) {
    Epilogue epilogue(args, out);
    ScaledMMLaneOf(args, scratch, epilogue).multiply(p0, p1);
  }
  static NotFinite run_quant(const ScaledMMArgs& args, const Int8Output& out, std::int64_t p0,
                             std::int64_t p1, std::byte* scratch) {
    Epilogue epilogue(args, out);
    ScaledMMLaneOf(args, scratch, epilogue).multiply(p0, p1);
    return epilogue.not_finite();
  }

 private:
  ScaledMMLaneOf(const ScaledMMArgs& args, std::byte* scratch, Epilogue& epilogue)
      : args_(args), weight_(*args.weight), lda_(weight_.padded_k()),
        quads_((weight_.k() + kQuad - 1) / kQuad), rows_(reinterpret_cast<Element*>(scratch)),
        rest_(scratch + static_cast<std::size_t>(args.m * lda_) * sizeof(Element)), epilogue_(epilogue) {}

  void multiply(std::int64_t p0, std::int64_t p1) {
    for (std::int64_t m = 0; m < args_.m; ++m) {
      D::prepare(args_.a + m * args_.lda, weight_.k(), rows_ + m * lda_);
    }
    for (; p0 < p1; p0 += kGroup) {
      const int panels = static_cast<int>(p1 - p0 < kGroup ? p1 - p0 : kGroup);
      if (args_.m <= kStreamRows) {
        with_rows<kStreamRows>(static_cast<int>(args_.m), [&](auto r) {
          group<r.value, 1, D::template kChains<r.value>>(0, p0, panels);
        });
      } else if (sizeof(Weight) > 1 && args_.m > kDirectRows) {
        if constexpr (sizeof(Weight) > 1) widened(p0, panels);
      } else {
        over_rows([&](auto r, std::int64_t m) { group<r.value, D::kMaxPanels, 1>(m, p0, panels); });
      }
    }
  }

  // Calls f(rows, m) for tiles of up to kMaxRows rows.
  template <class F>
  [[gnu::always_inline]] void over_rows(F f) const {
    for (std::int64_t m = 0; m < args_.m; m += D::kMaxRows) {
      const int count = static_cast<int>(args_.m - m < D::kMaxRows ? args_.m - m : D::kMaxRows);
      with_rows<D::kMaxRows>(count, [&](auto r) { f(r, m); });
    }
  }

  // kRows rows of a group of panels.
  template <int kRows, int kPanels, int kChains>
  void group(std::int64_t m, std::int64_t panel, int panels) {
    alignas(64) std::int32_t sums[kRows * kGroup * kPanel];
    epilogue_.prefetch(m, kRows, panel, panels);
    int p = 0;
    for (; p + kPanels <= panels; p += kPanels) {
      tile<kRows, kPanels, kChains>(m, panel + p, weight_.panel(panel + p), sums + p * kPanel);
    }
    if constexpr (kPanels > 1) {
      for (; p < panels; ++p) tile<kRows, 1, 1>(m, panel + p, weight_.panel(panel + p), sums + p * kPanel);
    }
    epilogue_.rows(sums, kGroup * kPanel, m, kRows, panel, panels);
  }

  // All rows of a group of panels, each panel widened once for all of them.
  void widened(std::int64_t panel, int panels) {
    auto* weights = reinterpret_cast<Weight*>(rest_);
    auto* sums = reinterpret_cast<std::int32_t*>(weights + lda_ * kPanel);
    for (int p = 0; p < panels; ++p) {
      D::widen(weight_.panel(panel + p), quads_, weights);
      over_rows([&](auto r, std::int64_t m) {
        if (p == panels - 1) epilogue_.prefetch(m, r.value, panel, panels);
        tile<r.value, 1, 1>(m, panel + p, weights, sums + (m * kGroup + p) * kPanel);
      });
    }
    epilogue_.rows(sums, kGroup * kPanel, 0, args_.m, panel, panels);
  }

  template <int kRows, int kPanels, int kChains, class T>
  void tile(std::int64_t m, std::int64_t panel, const T* weights, std::int32_t* sums) const {
    D::template tile<kRows, kPanels, kChains>(rows_ + m * lda_, lda_, weights, lda_ * kPanel, quads_,
                                              weight_.offset() + panel * kPanel, sums, kGroup * kPanel);
  }

  const ScaledMMArgs& args_;
  const PackedInt8Weight& weight_;
  const std::int64_t lda_, quads_;
  Element* rows_;     // [M, lda_]
  std::byte* rest_;   // a widened panel and the sums of its group
  Epilogue& epilogue_;
};

}  // namespace oasr::kernels
