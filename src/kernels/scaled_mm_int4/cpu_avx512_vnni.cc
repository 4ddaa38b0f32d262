#include "kernels/scaled_mm_int4/dot_avx512_vnni.h"
#include "kernels/scaled_mm_int4/lanes.h"

namespace oasr::kernels {

void int4_mm_avx512_vnni(const Int4MMArgs& args, const FloatOutput& out, std::int64_t p0, std::int64_t p1,
                         std::byte* scratch) {
  ScaledMMLoop<Int4Product<avx512::Int4Dot>>::run(args, out, p0, p1, scratch);
}

NotFinite int4_mm_quant_avx512_vnni(const Int4MMArgs& args, const Int8Output& out, std::int64_t p0,
                                    std::int64_t p1, std::byte* scratch) {
  return ScaledMMLoop<Int4Product<avx512::Int4Dot>>::run_quant(args, out, p0, p1, scratch);
}

}  // namespace oasr::kernels
