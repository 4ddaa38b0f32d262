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
template <class S, class Weight>
class ScaledMMEpilogue {
  using Args = ScaledMMArgsOf<Weight>;
  using V = typename S::V;
  using Steps = Int8Steps<S>;
  static constexpr std::int64_t kPanel = Weight::kPanel;
  static constexpr std::int64_t kChunk = 6;  // rows that are activated at once

 public:
  static constexpr std::int64_t kMostPanels = 4;

  // row_sums: Σ a(m, k) of every row, for weights with zeros that are floats.
  ScaledMMEpilogue(const Args& args, const FloatOutput& out, const std::int32_t* row_sums = nullptr)
      : args_(args), out_(&out), row_sums_(row_sums) {}
  ScaledMMEpilogue(const Args& args, const Int8Output& out, const std::int32_t* row_sums = nullptr)
      : args_(args), quant_(&out), row_sums_(row_sums) {}

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
        scale(sums + r * stride, m + r, first, columns, out_->y + (m + r) * out_->ldy + first);
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
      scale(sums + r * stride, m + r, first, columns, values + r * kColumns);
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
  void scale(const std::int32_t* sums, std::int64_t m, std::int64_t first, std::int64_t columns,
             float* to) const {
    const float* w_scale = args_.weight->scale() + first;
    const V a = S::set(args_.a_scale.of_row(m));
    if constexpr (Weight::kFloatZeros) {
      if (const float* zero = args_.weight->float_zero(); zero != nullptr) {
        const V row = S::set(-static_cast<float>(row_sums_[m]));
        return add_bias(first, columns, to, [&](std::int64_t n) {
          const V product = S::mul(S::load(w_scale + n), S::convert(sums + n));
          return S::mul(a, S::fma(row, S::load(zero + first + n), product));
        });
      }
    }
    add_bias(first, columns, to, [&](std::int64_t n) {
      return S::mul(a, S::mul(S::load(w_scale + n), S::convert(sums + n)));
    });
  }

  // to(n) = value(n) + bias(n)
  template <class Value>
  [[gnu::always_inline]] void add_bias(std::int64_t first, std::int64_t columns, float* to, Value value) const {
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

  const Args& args_;
  const FloatOutput* out_ = nullptr;
  const Int8Output* quant_ = nullptr;
  const std::int32_t* row_sums_;
  NotFinite not_finite_;
};

// The lane of a processor whose dot-product instructions work on vectors: the loop over groups of panels
// and tiles of rows. Product, the operands of one block as the instructions take them:
//   Weight, Simd     of args; the vectors of the epilogue
//   kMaxRows         rows of a register tile; kMaxPanels, panels of it
//   kStreamRows      up to this many rows the weights are read once, in the order of memory, and k is
//                    split over kChains<rows> accumulators
//   kUnpacks         whether panels can be unpacked once for all rows: unpack(panel), which is not worth a
//                    pass of its own for up to kDirectRows; end() is the scratch memory after it
//   Product(args, scratch)     prepares all rows
//   row_sums()                 for the epilogue
//   tile<kRows, kPanels, kChains, kUnpacked>(m, panel, sums, stride)
//       sums(r, n) = Σ a(m + r, k) · w(panel · 16 + n, k), of the panels as packed, or as unpack() left them
// Epilogue: what becomes of the sums; tests take them as they are.
template <class Product, class Epilogue = ScaledMMEpilogue<typename Product::Simd, typename Product::Weight>>
class ScaledMMLoop {
  using Weight = typename Product::Weight;
  using Args = ScaledMMArgsOf<Weight>;
  static constexpr std::int64_t kPanel = Weight::kPanel;
  // Panels that the epilogue sees at once.
  static constexpr std::int64_t kGroup = Epilogue::kMostPanels;

 public:
  template <class Output>
  static void run(const Args& args, const Output& out, std::int64_t p0, std::int64_t p1, std::byte* scratch) {
    ScaledMMLoop(args, out, scratch).multiply(p0, p1);
  }
  static NotFinite run_quant(const Args& args, const Int8Output& out, std::int64_t p0, std::int64_t p1,
                             std::byte* scratch) {
    ScaledMMLoop loop(args, out, scratch);
    loop.multiply(p0, p1);
    return loop.epilogue_.not_finite();
  }

 private:
  template <class Output>
  ScaledMMLoop(const Args& args, const Output& out, std::byte* scratch)
      : m_(args.m), product_(args, scratch), epilogue_(args, out, product_.row_sums()) {}

  void multiply(std::int64_t p0, std::int64_t p1) {
    for (; p0 < p1; p0 += kGroup) {
      const int panels = static_cast<int>(p1 - p0 < kGroup ? p1 - p0 : kGroup);
      if (m_ <= Product::kStreamRows) {
        with_rows<Product::kStreamRows>(static_cast<int>(m_), [&](auto r) {
          group<r.value, 1, Product::template kChains<r.value>>(0, p0, panels);
        });
        continue;
      }
      if constexpr (Product::kUnpacks) {
        if (m_ > Product::kDirectRows) {
          unpacked(p0, panels);
          continue;
        }
      }
      over_rows([&](auto r, std::int64_t m) { group<r.value, Product::kMaxPanels, 1>(m, p0, panels); });
    }
  }

  // Calls f(rows, m) for tiles of up to kMaxRows rows.
  template <class F>
  [[gnu::always_inline]] void over_rows(F f) const {
    for (std::int64_t m = 0; m < m_; m += Product::kMaxRows) {
      const int count = static_cast<int>(m_ - m < Product::kMaxRows ? m_ - m : Product::kMaxRows);
      with_rows<Product::kMaxRows>(count, [&](auto r) { f(r, m); });
    }
  }

  // kRows rows of a group of panels.
  template <int kRows, int kPanels, int kChains>
  void group(std::int64_t m, std::int64_t panel, int panels) {
    alignas(64) std::int32_t sums[kRows * kGroup * kPanel];
    epilogue_.prefetch(m, kRows, panel, panels);
    int p = 0;
    for (; p + kPanels <= panels; p += kPanels) {
      tile<kRows, kPanels, kChains, false>(m, panel + p, sums + p * kPanel);
    }
    if constexpr (kPanels > 1) {
      for (; p < panels; ++p) tile<kRows, 1, 1, false>(m, panel + p, sums + p * kPanel);
    }
    epilogue_.rows(sums, kGroup * kPanel, m, kRows, panel, panels);
  }

  // All rows of a group of panels, each panel unpacked once for all of them.
  void unpacked(std::int64_t panel, int panels) {
    auto* sums = reinterpret_cast<std::int32_t*>(product_.end());
    for (int p = 0; p < panels; ++p) {
      product_.unpack(panel + p);
      over_rows([&](auto r, std::int64_t m) {
        if (p == panels - 1) epilogue_.prefetch(m, r.value, panel, panels);
        tile<r.value, 1, 1, true>(m, panel + p, sums + (m * kGroup + p) * kPanel);
      });
    }
    epilogue_.rows(sums, kGroup * kPanel, 0, m_, panel, panels);
  }

  template <int kRows, int kPanels, int kChains, bool kUnpacked>
  void tile(std::int64_t m, std::int64_t panel, std::int32_t* sums) const {
    product_.template tile<kRows, kPanels, kChains, kUnpacked>(m, panel, sums, kGroup * kPanel);
  }

  const std::int64_t m_;
  Product product_;
  Epilogue epilogue_;
};

// The operands of int8 products. D, the dot product:
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
class Int8Product {
  using Element = typename D::Element;
  static constexpr std::int64_t kPanel = PackedInt8Weight::kPanel;
  static constexpr std::int64_t kQuad = PackedInt8Weight::kQuad;

 public:
  using Weight = PackedInt8Weight;
  using Simd = typename D::Simd;
  static constexpr int kMaxRows = D::kMaxRows, kMaxPanels = D::kMaxPanels, kStreamRows = 4;
  static constexpr std::int64_t kDirectRows = 2 * D::kMaxRows;
  static constexpr bool kUnpacks = sizeof(typename D::Weight) > 1;
  template <int kRows>
  static constexpr int kChains = D::template kChains<kRows>;

  Int8Product(const ScaledMMArgs& args, std::byte* scratch)
      : weight_(*args.weight), lda_(weight_.padded_k()), quads_((weight_.k() + kQuad - 1) / kQuad),
        rows_(reinterpret_cast<Element*>(scratch)),
        wide_(reinterpret_cast<typename D::Weight*>(rows_ + args.m * lda_)) {
    for (std::int64_t m = 0; m < args.m; ++m) {
      D::prepare(args.a + m * args.lda, weight_.k(), rows_ + m * lda_);
    }
  }

  static const std::int32_t* row_sums() { return nullptr; }
  void* end() const { return wide_ + lda_ * kPanel; }
  void unpack(std::int64_t panel) const { D::widen(weight_.panel(panel), quads_, wide_); }

  template <int kRows, int kPanels, int kChains, bool kUnpacked>
  [[gnu::always_inline]] void tile(std::int64_t m, std::int64_t panel, std::int32_t* sums,
                                   std::int64_t stride) const {
    const auto multiply = [&](const auto* weights) {
      D::template tile<kRows, kPanels, kChains>(rows_ + m * lda_, lda_, weights, lda_ * kPanel, quads_,
                                                weight_.offset() + panel * kPanel, sums, stride);
    };
    if constexpr (kUnpacked) {
      multiply(wide_);
    } else {
      multiply(weight_.panel(panel));
    }
  }

 private:
  const PackedInt8Weight& weight_;
  const std::int64_t lda_, quads_;
  Element* rows_;            // [M, lda_]
  typename D::Weight* wide_;  // a widened panel
};

}  // namespace oasr::kernels
