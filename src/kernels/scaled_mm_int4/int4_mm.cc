#include "base/check.h"
#include "kernels/lane_choice.h"
#include "kernels/scaled_mm/multiply.h"
#include "kernels/scaled_mm_int4/op.h"

namespace oasr::kernels {

template <>
struct ScaledMMLanes<PackedInt4Weight> {
  static const Int4MMLane& lane(Isa isa) { return int4_mm_lane(isa); }
  static std::size_t scratch(std::int64_t rows, std::int64_t k) { return int4_mm_scratch(rows, k); }
};

const Int4MMLane& int4_mm_lane(Isa isa) { return choose_lane(int4_mm_lanes(), isa); }

std::size_t int4_mm_scratch(std::int64_t rows, std::int64_t k) {
  // Rows of s8, K padded, and the sums of their groups, of which there are no more than one in kDepth.
  constexpr std::int64_t kDepth = PackedInt4Weight::kDepth;
  const std::int64_t groups = (k + kDepth - 1) / kDepth;
  return static_cast<std::size_t>(rows * groups) * (kDepth + sizeof(std::int32_t));
}

void int4_mm_reserve(ExecContext& context, std::int64_t k) { reserve_blocks<PackedInt4Weight>(context, k); }

void scaled_mm(ExecContext& context, const Int4MMArgs& args, const FloatOutput& out) {
  CHECK(!multiply(context, args, out), "the float output reports nothing");
}

NotFinite scaled_mm_quant(ExecContext& context, const Int4MMArgs& args, const Int8Output& out) {
  return multiply(context, args, out);
}

NotFinite scaled_mm_dynamic(ExecContext& context, const DynamicInt4MMArgs& args, const FloatOutput& out) {
  return multiply(context, args, out);
}
NotFinite scaled_mm_dynamic(ExecContext& context, const DynamicInt4MMArgs& args, const Int8Output& out) {
  return multiply(context, args, out);
}

NotFinite scaled_mm_static(ExecContext& context, const StaticInt4MMArgs& args, const FloatOutput& out) {
  return multiply(context, args, out);
}
NotFinite scaled_mm_static(ExecContext& context, const StaticInt4MMArgs& args, const Int8Output& out) {
  return multiply(context, args, out);
}

}  // namespace oasr::kernels
