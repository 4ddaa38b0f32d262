// scaled_mm() for any instruction set: the templates that the files cpu_*.cc instantiate.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/quantize/lane.h"
#include "kernels/scaled_mm/op.h"
#include "kernels/simd/several.h"
#include "kernels/simd/tile.h"
#include "tensor/exact_poly.h"

namespace oasr::kernels {

// From int32 sums to the output (epilogue.h) for one row of up to kMostPanels panels.
template <class S>
class ScaledMMEpilogue {
  using V = typename S::V;
  using Steps = Int8Steps<S>;
  static constexpr std::int64_t kPanel = PackedInt8Weight::kPanel;

 public:
  static constexpr std::int64_t kMostPanels = 4;

  ScaledMMEpilogue(const ScaledMMArgs& args, const FloatOutput& out) : args_(args), out_(&out) {}
  ScaledMMEpilogue(const ScaledMMArgs& args, const Int8Output& out) : args_(args), quant_(&out) {}

  // Rows m, m + 1, … of `count`; sums of row r start at sums + r · stride, aligned to 64 bytes.
  [[gnu::noinline]] void rows(const std::int32_t* sums, std::int64_t stride, std::int64_t m,
                              std::int64_t count, std::int64_t panel, std::int64_t panels) {
    const std::int64_t first = panel * kPanel, left = args_.weight->n() - first;
    const std::int64_t columns = left < panels * kPanel ? left : panels * kPanel;
    for (std::int64_t r = 0; r < count; ++r) row(sums + r * stride, m + r, first, columns);
  }
  NotFinite not_finite() const { return not_finite_; }

 private:
  void row(const std::int32_t* sums, std::int64_t m, std::int64_t first, std::int64_t columns) {
    alignas(64) float value[kMostPanels * kPanel];
    const bool plain = quant_ == nullptr && out_->residual == nullptr &&
                       args_.activation == Activation::none && columns % S::kWidth == 0;
    float* to = plain ? out_->y + m * out_->ldy + first : value;
    scale(sums, args_.a_scale.of_row(m), first, columns, to);
    if (plain) return;
    if (args_.activation == Activation::gelu) gelu(value, columns);
    if (quant_ != nullptr) {
      const bool finite = Steps::fixed_row(value, quant_->multiplier + first, columns,
                                           quant_->q + m * quant_->ldq + first);
      if (!finite) not_finite_.merge({m});
    } else {
      const float* residual =
          out_->residual == nullptr ? nullptr : out_->residual + m * out_->ldr + first;
      write(value, residual, columns, out_->y + m * out_->ldy + first);
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

  static void gelu(float* value, std::int64_t columns) {
    using Pair = Several<S, 2>;
    for (std::int64_t n = 0; n < columns; n += Pair::kWidth) {
      Pair::store(value + n, exact::gelu<Pair>(Pair::load(value + n)));
    }
  }

  static void write(const float* value, const float* residual, std::int64_t columns, float* y) {
    for (std::int64_t n = 0; n < columns; n += S::kWidth) {
      const int elements = Steps::count(columns - n);
      V v = S::load(value + n);
      if (residual != nullptr) v = S::add(v, S::load_first(residual + n, elements));
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
//   kMaxRows        rows of a register tile; kMaxPanels, panels of it
//   prepare(from, k, to)       one row of int8 as Elements, to a multiple of kQuad (any padding)
//   tile<kRows, kPanels, kChains>(a, lda, b, panel_stride, quads, offset, sums, stride)
//       sums(r, n) = Σ a(r, k) · b(k, n), the offset of the weight used or not as the form needs;
//       kChains > 1 (one panel only) splits k over independent accumulators
template <class D>
class ScaledMMLaneOf {
  static constexpr std::int64_t kPanel = PackedInt8Weight::kPanel;
  static constexpr std::int64_t kQuad = PackedInt8Weight::kQuad;
  // Up to this many rows the weights are read once, in the order of memory.
  static constexpr int kStreamRows = 4;

 public:
  static void run(const ScaledMMArgs& args, const FloatOutput& out, std::int64_t p0, std::int64_t p1,
                  std::byte* scratch) {
    ScaledMMEpilogue<typename D::Simd> epilogue(args, out);
    multiply(args, p0, p1, scratch, epilogue);
  }
  static NotFinite run_quant(const ScaledMMArgs& args, const Int8Output& out, std::int64_t p0,
                             std::int64_t p1, std::byte* scratch) {
    ScaledMMEpilogue<typename D::Simd> epilogue(args, out);
    multiply(args, p0, p1, scratch, epilogue);
    return epilogue.not_finite();
  }

 private:
  using Element = typename D::Element;
  using Epilogue = ScaledMMEpilogue<typename D::Simd>;

  static void multiply(const ScaledMMArgs& args, std::int64_t p0, std::int64_t p1, std::byte* scratch,
                       Epilogue& epilogue) {
    auto* rows = reinterpret_cast<Element*>(scratch);
    const std::int64_t k = args.weight->k(), lda = args.weight->padded_k();
    for (std::int64_t m = 0; m < args.m; ++m) D::prepare(args.a + m * args.lda, k, rows + m * lda);
    if (args.m <= kStreamRows) {
      with_rows<kStreamRows>(static_cast<int>(args.m), [&](auto r) {
        for (std::int64_t p = p0; p < p1; ++p) {
          tile<r.value, 1, D::template kChains<r.value>>(args, rows, 0, p, epilogue);
        }
      });
      return;
    }
    for (; p0 + D::kMaxPanels <= p1; p0 += D::kMaxPanels) down<D::kMaxPanels>(args, rows, p0, epilogue);
    for (; p0 < p1; ++p0) down<1>(args, rows, p0, epilogue);
  }

  // All rows of kPanels panels.
  template <int kPanels>
  static void down(const ScaledMMArgs& args, const Element* rows, std::int64_t panel, Epilogue& epilogue) {
    for (std::int64_t m = 0; m < args.m; m += D::kMaxRows) {
      const int count = static_cast<int>(args.m - m < D::kMaxRows ? args.m - m : D::kMaxRows);
      with_rows<D::kMaxRows>(count, [&](auto r) {
        tile<r.value, kPanels, 1>(args, rows, m, panel, epilogue);
      });
    }
  }

  template <int kRows, int kPanels, int kChains>
  static void tile(const ScaledMMArgs& args, const Element* rows, std::int64_t m, std::int64_t panel,
                   Epilogue& epilogue) {
    static_assert(kPanels <= Epilogue::kMostPanels);
    alignas(64) std::int32_t sums[kRows * kPanels * kPanel];
    const PackedInt8Weight& weight = *args.weight;
    const std::int64_t lda = weight.padded_k();
    D::template tile<kRows, kPanels, kChains>(rows + m * lda, lda, weight.panel(panel), lda * kPanel,
                                              (weight.k() + kQuad - 1) / kQuad,
                                              weight.offset() + panel * kPanel, sums);
    epilogue.rows(sums, kPanels * kPanel, m, kRows, panel, kPanels);
  }
};

}  // namespace oasr::kernels
