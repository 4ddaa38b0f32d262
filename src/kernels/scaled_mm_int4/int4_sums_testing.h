// The int32 sums of products with 4-bit weights before any epilogue: for tests, one file and one set of
// compiler flags a lane, as with the lanes themselves.
#pragma once

#include "kernels/scaled_mm_int4/product.h"

namespace oasr::kernels {

// [M, panels · 16], row stride ld.
struct Int4Sums {
  std::int32_t* sums;
  std::int64_t ld;
};

// A type for each lane, so that no function of one instruction set is another's.
template <class Product>
class Int4SumsEpilogue {
 public:
  static constexpr std::int64_t kMostPanels = 4;
  Int4SumsEpilogue(const Int4MMArgs&, const Int4Sums& out, const std::int32_t*) : out_(out) {}

  static void prefetch(std::int64_t, std::int64_t, std::int64_t, std::int64_t) {}
  void rows(const std::int32_t* sums, std::int64_t stride, std::int64_t m, std::int64_t count, std::int64_t panel,
            std::int64_t panels) const {
    for (std::int64_t r = 0; r < count; ++r) {
      std::memcpy(out_.sums + (m + r) * out_.ld + panel * PackedInt4Weight::kPanel, sums + r * stride,
                  static_cast<std::size_t>(panels * PackedInt4Weight::kPanel) * sizeof(std::int32_t));
    }
  }

 private:
  const Int4Sums& out_;
};

template <class Dot>
void int4_sums(const Int4MMArgs& args, const Int4Sums& out, std::int64_t p0, std::int64_t p1, std::byte* scratch) {
  ScaledMMLoop<Int4Product<Dot>, Int4SumsEpilogue<Int4Product<Dot>>>::run(args, out, p0, p1, scratch);
}

// What the lanes of these names run, panels [p0, p1) of all rows.
using Int4SumsFunction = void(const Int4MMArgs& args, const Int4Sums& out, std::int64_t p0, std::int64_t p1,
                              std::byte* scratch);
Int4SumsFunction int4_sums_scalar, int4_sums_avx2, int4_sums_avx512_vnni;

}  // namespace oasr::kernels
