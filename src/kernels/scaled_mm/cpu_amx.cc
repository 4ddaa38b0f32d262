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
using Epilogue = ScaledMMEpilogue<Simd, PackedInt8Weight>;

// Registers: tiles 0 … 3 are sums, 4 and 5 activations of two times 16 rows, 6 and 7 weights of two
// panels: four products share four loads, the best that eight tiles allow. The loads are the limit (a
// load takes 9 ns, a product 6, on the processor this was measured on).
class Product {
 public:
  Product(const ScaledMMArgs& args, std::byte* scratch, Epilogue& epilogue)
      : args_(args), weight_(*args.weight), steps_(weight_.padded_k() / kDepth),
        tiles_((args.m + kRows - 1) / kRows), a_(reinterpret_cast<std::int8_t*>(scratch)),
        sums_(reinterpret_cast<std::int32_t*>(a_ + tiles_ * steps_ * kTileBytes)), epilogue_(epilogue) {}

  void run(std::int64_t p0, std::int64_t p1) {
    for (std::int64_t t = 0; t < tiles_; ++t) prepare(t);
    const Tiles hold;
    for (; p0 < p1; p0 += kGroup) {
      panel_ = p0;
      panels_ = p1 - p0 < kGroup ? p1 - p0 : kGroup;
      std::int64_t p = 0;
      for (; p + 2 <= panels_; p += 2) down<2>(p);
      if (p < panels_) down<1>(p);
      finish();
    }
  }

 private:
  static constexpr std::int64_t kGroup = Epilogue::kMostPanels;  // panels that the epilogue sees at once

  // Copies 16 rows as tiles, [K / 64][16][64], zeros after the last row and the last k.
  void prepare(std::int64_t t) {
    std::int8_t* tile = a_ + t * steps_ * kTileBytes;
    for (std::int64_t r = 0; r < kRows; ++r) {
      const std::int64_t m = t * kRows + r;
      const std::int8_t* row = args_.a + m * args_.lda;
      for (std::int64_t s = 0; s < steps_; ++s) {
        const std::int64_t left = m < args_.m ? weight_.k() - s * kDepth : 0;
        const __mmask64 first = left >= kDepth ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
        const __m512i values = _mm512_maskz_loadu_epi8(first, row + s * kDepth);
        _mm512_store_si512(tile + s * kTileBytes + r * kDepth, values);
      }
    }
  }

  // All rows of kPanels panels from `p` of the group.
  template <int kPanels>
  void down(std::int64_t p) {
    std::int64_t t = 0;
    for (; t + 2 <= tiles_; t += 2) block<2, kPanels>(t, p);
    if (t < tiles_) block<1, kPanels>(t, p);
  }

  // Rows whose sums are complete go to the epilogue only after the next block's instructions are on
  // their way, so that the tiles work while the vectors do.
  template <int kTiles, int kPanels>
  void block(std::int64_t t, std::int64_t p) {
    const bool last = p + kPanels == panels_;
    const std::int64_t m = t * kRows, left = args_.m - m;
    const std::int64_t rows = left < kTiles * kRows ? left : kTiles * kRows;
    if (last) epilogue_.prefetch(m, rows, panel_, panels_);
    std::int32_t* sums = sums_ + (m * kGroup + p) * kPanel;
    Tiles::zero<0>();
    Tiles::zero<1>();
    Tiles::zero<2>();
    Tiles::zero<3>();
    for (std::int64_t s = 0; s < steps_; ++s) {
      const std::int8_t* a = a_ + (t * steps_ + s) * kTileBytes;
      Tiles::load<4>(a, kDepth);
      if constexpr (kTiles == 2) Tiles::load<5>(a + steps_ * kTileBytes, kDepth);
      step<kTiles, kPanels, 0>(weight_.panel(panel_ + p) + s * kTileBytes);
    }
    finish();
    store<kTiles, kPanels, 0>(sums);
    if (last) pending_ = {m, rows};
  }

  void finish() {
    if (pending_.rows == 0) return;
    epilogue_.rows(sums_ + pending_.m * kGroup * kPanel, kGroup * kPanel, pending_.m, pending_.rows,
                   panel_, panels_);
    pending_.rows = 0;
  }

  // The sum of row tile i and panel j is in tile i · kPanels + j.
  template <int kTiles, int kPanels, int kAt>
  [[gnu::always_inline]] void step(const std::int8_t* b) const {
    Tiles::load<6 + kAt>(b, kDepth);
    Tiles::multiply<kAt, 4, 6 + kAt>();
    if constexpr (kTiles == 2) Tiles::multiply<kPanels + kAt, 5, 6 + kAt>();
    if constexpr (kAt + 1 < kPanels) step<kTiles, kPanels, kAt + 1>(b + weight_.padded_k() * kPanel);
  }
  template <int kTiles, int kPanels, int kAt>
  [[gnu::always_inline]] static void store(std::int32_t* sums) {
    constexpr std::int64_t kStride = kGroup * kPanel;
    Tiles::store<kAt>(sums + kAt / kPanels * kRows * kStride + kAt % kPanels * kPanel,
                      kStride * static_cast<std::int64_t>(sizeof(std::int32_t)));
    if constexpr (kAt + 1 < kTiles * kPanels) store<kTiles, kPanels, kAt + 1>(sums);
  }

  // Rows [m, m + rows) whose sums the epilogue has not seen.
  struct Pending {
    std::int64_t m = 0, rows = 0;
  };

  const ScaledMMArgs& args_;
  const PackedInt8Weight& weight_;
  const std::int64_t steps_, tiles_;
  std::int8_t* a_;        // [tiles_][steps_][16][64]
  std::int32_t* sums_;    // [tiles_ · 16][kGroup · kPanel]
  Epilogue& epilogue_;
  std::int64_t panel_ = 0, panels_ = 0;  // of the group
  Pending pending_;
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
