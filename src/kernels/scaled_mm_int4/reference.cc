#include "kernels/scaled_mm/reference.h"

#include "kernels/scaled_mm_int4/op.h"

namespace oasr::kernels {

void scaled_mm_reference(const Int4MMArgs& args, const FloatOutput& out) { (void)reference(args, out).row; }
NotFinite scaled_mm_quant_reference(const Int4MMArgs& args, const Int8Output& out) {
  return reference(args, out);
}

NotFinite scaled_mm_dynamic_reference(const DynamicInt4MMArgs& args, const FloatOutput& out) {
  return reference(args, out);
}
NotFinite scaled_mm_dynamic_reference(const DynamicInt4MMArgs& args, const Int8Output& out) {
  return reference(args, out);
}

NotFinite scaled_mm_static_reference(const StaticInt4MMArgs& args, const FloatOutput& out) {
  return reference(args, out);
}
NotFinite scaled_mm_static_reference(const StaticInt4MMArgs& args, const Int8Output& out) {
  return reference(args, out);
}

}  // namespace oasr::kernels
