#include "kernels/quantize/vectors_avx512.h"
#include "kernels/scaled_mm/lane.h"
#include "kernels/scaled_mm/lanes.h"
#include "kernels/scaled_mm/tiles_amx.h"

namespace oasr::kernels {
namespace amx {
namespace {

constexpr std::int64_t kRows = 16, kDepth = PackedInt8Weight::kDepth, kPanel = PackedInt8Weight::kPanel;
constexpr std::int64_t kTileBytes = kRows * kDepth;
// Few rows are bound by the memory of the weights, and would leave most of a tile empty.
constexpr std::int64_t kVectorRows = 8;

struct Simd : avx512::Int8Simd {};
using Epilogue = ScaledMMEpilogue<Simd>;
constexpr std::int64_t kGroup = Epilogue::kMostPanels;  // panels that the epilogue sees at once

class Product {
 public:
  Product(const ScaledMMArgs& args, std::byte* scratch, Epilogue& epilogue)
      : args_(args), weight_(*args.weight), steps_(weight_.padded_k() / kDepth),
        tiles_((args.m + kRows - 1) / kRows), a_(reinterpret_cast<std::int8_t*>(scratch)), epilogue_(epilogue) {}

  void run(std::int64_t p0, std::int64_t p1) {
    for (std::int64_t t = 0; t < tiles_; ++t) prepare(t);
    const Tiles hold;
    for (; p0 < p1; p0 += kGroup) {
      const std::int64_t panels = p1 - p0 < kGroup ? p1 - p0 : kGroup;
      std::int64_t t = 0;
      for (; t + 2 <= tiles_; t += 2) group<2, 2>(t, p0, panels);
      if (t < tiles_) group<1, 4>(t, p0, panels);
    }
    finish();
  }

 private:
  // Copies 16 rows as tiles, [K / 64][16][64], zeros after the last row and the last k.
  void prepare(std::int64_t t) {
    std::int8_t* tile = a_ + t * steps_ * kTileBytes;
    for (std::int64_t r = 0; r < kRows; ++r) {
      const std::int64_t m = t * kRows + r;
      const std::int8_t* row = args_.a + m * args_.lda;
      for (std::int64_t s = 0; s < steps_; ++s) {
        const std::int64_t left = m < args_.m ? weight_.k() - s * kDepth : 0;
        const __mmask64 first = left >= kDepth ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
        _mm512_store_si512(tile + s * kTileBytes + r * kDepth, _mm512_maskz_loadu_epi8(first, row + s * kDepth));
      }
    }
  }

  // kTiles · 16 rows of a group of panels, kPanels at a time.
  template <int kTiles, int kPanels>
  void group(std::int64_t tile, std::int64_t panel, std::int64_t panels) {
    const std::int64_t m = tile * kRows, left = args_.m - m;
    const std::int64_t rows = left < kTiles * kRows ? left : kTiles * kRows;
    epilogue_.prefetch(m, rows, panel, panels);
    std::int64_t p = 0;
    for (; p + kPanels <= panels; p += kPanels) block<kTiles, kPanels>(tile, panel + p, sums_[at_] + p * kPanel);
    for (; p < panels; ++p) block<kTiles, 1>(tile, panel + p, sums_[at_] + p * kPanel);
    pending_ = {sums_[at_], m, rows, panel, panels};
    at_ ^= 1;
  }

  // The sums of one group go to the epilogue only after the next block's instructions are on their
  // way, so that the tiles work while the vectors do.
  template <int kTiles, int kPanels>
  void block(std::int64_t tile, std::int64_t panel, std::int32_t* sums) {
    static_assert(kTiles * kPanels <= 4);
    multiply<kTiles, kPanels>(a_ + tile * steps_ * kTileBytes, weight_.panel(panel));
    finish();
    store<kTiles, kPanels, 0>(sums);
  }

  void finish() {
    if (pending_.rows == 0) return;
    epilogue_.rows(pending_.sums, kGroup * kPanel, pending_.m, pending_.rows, pending_.panel,
                   pending_.panels);
    pending_.rows = 0;
  }

  // Tiles 0 … 3 are the sums, row tile by row tile; then kTiles of activations; the others weights.
  template <int kTiles, int kPanels>
  void multiply(const std::int8_t* a, const std::int8_t* b) const {
    const std::int64_t row_tile = steps_ * kTileBytes, panel = weight_.padded_k() * kPanel;
    Tiles::zero<0>();
    Tiles::zero<1>();
    Tiles::zero<2>();
    Tiles::zero<3>();
    for (std::int64_t s = 0; s < steps_; ++s) {
      Tiles::load<4>(a + s * kTileBytes, kDepth);
      if constexpr (kTiles == 2) Tiles::load<5>(a + row_tile + s * kTileBytes, kDepth);
      step<kTiles, kPanels, 0>(b + s * kTileBytes, panel);
    }
  }
  template <int kTiles, int kPanels, int kAt>
  [[gnu::always_inline]] static void step(const std::int8_t* b, std::int64_t panel) {
    constexpr int kWeights = kTiles == 2 ? 6 + kAt % 2 : 5 + kAt % 3;
    Tiles::load<kWeights>(b, kDepth);
    Tiles::multiply<kAt, 4, kWeights>();
    if constexpr (kTiles == 2) Tiles::multiply<kPanels + kAt, 5, kWeights>();
    if constexpr (kAt + 1 < kPanels) step<kTiles, kPanels, kAt + 1>(b + panel, panel);
  }
  template <int kTiles, int kPanels, int kAt>
  [[gnu::always_inline]] static void store(std::int32_t* sums) {
    constexpr std::int64_t kStride = kGroup * kPanel;
    Tiles::store<kAt>(sums + kAt / kPanels * kRows * kStride + kAt % kPanels * kPanel,
                      kStride * static_cast<std::int64_t>(sizeof(std::int32_t)));
    if constexpr (kAt + 1 < kTiles * kPanels) store<kTiles, kPanels, kAt + 1>(sums);
  }

  // Rows [m, m + rows) × panels of sums that the epilogue has not seen.
  struct Pending {
    const std::int32_t* sums = nullptr;
    std::int64_t m = 0, rows = 0, panel = 0, panels = 0;
  };

  const ScaledMMArgs& args_;
  const PackedInt8Weight& weight_;
  const std::int64_t steps_, tiles_;
  std::int8_t* a_;
  Epilogue& epilogue_;
  Pending pending_;
  int at_ = 0;
  alignas(64) std::int32_t sums_[2][2 * kRows * kGroup * kPanel];
};

}  // namespace
}  // namespace amx

void scaled_mm_amx(const ScaledMMArgs& args, const FloatOutput& out, std::int64_t p0,
                   std::int64_t p1, std::byte* scratch) {
  if (args.m <= amx::kVectorRows) return scaled_mm_avx512_vnni(args, out, p0, p1, scratch);
  amx::Epilogue epilogue(args, out);
  amx::Product(args, scratch, epilogue).run(p0, p1);
}

NotFinite scaled_mm_quant_amx(const ScaledMMArgs& args, const Int8Output& out, std::int64_t p0,
                              std::int64_t p1, std::byte* scratch) {
  if (args.m <= amx::kVectorRows) return scaled_mm_quant_avx512_vnni(args, out, p0, p1, scratch);
  amx::Epilogue epilogue(args, out);
  amx::Product(args, scratch, epilogue).run(p0, p1);
  return epilogue.not_finite();
}

}  // namespace oasr::kernels
