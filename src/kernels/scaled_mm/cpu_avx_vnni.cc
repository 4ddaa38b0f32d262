#include "kernels/scaled_mm/dot_avx_vnni.h"
#include "kernels/scaled_mm/lane.h"
#include "kernels/scaled_mm/lanes.h"

namespace oasr::kernels {

void scaled_mm_avx_vnni(const ScaledMMArgs& args, const FloatOutput& out, std::int64_t p0,
                  std::int64_t p1, std::byte* scratch) {
  ScaledMMLoop<Int8Product<avx2::VnniDot>>::run(args, out, p0, p1, scratch);
}

NotFinite scaled_mm_quant_avx_vnni(const ScaledMMArgs& args, const Int8Output& out, std::int64_t p0,
                             std::int64_t p1, std::byte* scratch) {
  return ScaledMMLoop<Int8Product<avx2::VnniDot>>::run_quant(args, out, p0, p1, scratch);
}

}  // namespace oasr::kernels
