#include "kernels/scaled_mm/reference.h"

namespace oasr::kernels {

void scaled_mm_reference(const ScaledMMArgs& args, const FloatOutput& out) { (void)reference(args, out).row; }
NotFinite scaled_mm_quant_reference(const ScaledMMArgs& args, const Int8Output& out) {
  return reference(args, out);
}

NotFinite scaled_mm_dynamic_reference(const DynamicScaledMMArgs& args, const FloatOutput& out) {
  return reference(args, out);
}
NotFinite scaled_mm_dynamic_reference(const DynamicScaledMMArgs& args, const Int8Output& out) {
  return reference(args, out);
}

NotFinite scaled_mm_static_reference(const StaticScaledMMArgs& args, const FloatOutput& out) {
  return reference(args, out);
}
NotFinite scaled_mm_static_reference(const StaticScaledMMArgs& args, const Int8Output& out) {
  return reference(args, out);
}

}  // namespace oasr::kernels
