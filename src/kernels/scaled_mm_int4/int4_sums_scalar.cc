#include "kernels/scaled_mm_int4/dot_scalar.h"
#include "kernels/scaled_mm_int4/int4_sums_testing.h"

namespace oasr::kernels {

void int4_sums_scalar(const Int4MMArgs& args, const Int4Sums& out, std::int64_t p0, std::int64_t p1,
                  std::byte* scratch) {
  int4_sums<scalar::Int4Dot>(args, out, p0, p1, scratch);
}

}  // namespace oasr::kernels
