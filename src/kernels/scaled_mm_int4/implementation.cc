#include <array>

#include "base/check.h"
#include "kernels/lane_choice.h"
#include "kernels/scaled_mm_int4/op.h"

namespace oasr::kernels {
namespace {

constexpr Int4MMImplementation kNative = {
    .backend = ScaledMMBackend::native,
    .mm = scaled_mm,
    .mm_quant = scaled_mm_quant,
    .dynamic = scaled_mm_dynamic,
    .dynamic_quant = scaled_mm_dynamic,
    .fixed = scaled_mm_static,
    .fixed_quant = scaled_mm_static,
    .reserve = int4_mm_reserve,
};

// The definitions need no context.
constexpr Int4MMImplementation kReference = {
    .backend = ScaledMMBackend::reference,
    .mm = [](ExecContext&, const Int4MMArgs& args,
             const FloatOutput& out) { scaled_mm_reference(args, out); },
    .mm_quant = [](ExecContext&, const Int4MMArgs& args,
                   const Int8Output& out) { return scaled_mm_quant_reference(args, out); },
    .dynamic = [](ExecContext&, const DynamicInt4MMArgs& args,
                  const FloatOutput& out) { return scaled_mm_dynamic_reference(args, out); },
    .dynamic_quant = [](ExecContext&, const DynamicInt4MMArgs& args,
                        const Int8Output& out) { return scaled_mm_dynamic_reference(args, out); },
    .fixed = [](ExecContext&, const StaticInt4MMArgs& args,
                const FloatOutput& out) { return scaled_mm_static_reference(args, out); },
    .fixed_quant = [](ExecContext&, const StaticInt4MMArgs& args,
                      const Int8Output& out) { return scaled_mm_static_reference(args, out); },
    .reserve = [](ExecContext&, std::int64_t) {},
};

constexpr std::array kImplementations = {kNative, kReference};

}  // namespace

std::span<const Int4MMImplementation> int4_mm_implementations() { return kImplementations; }

const Int4MMImplementation& int4_mm_implementation(ScaledMMBackend backend) {
  for (const Int4MMImplementation& row : kImplementations) {
    if (row.backend == backend) return row;
  }
  CHECK(false, "every backend of a CPU has an implementation, and no GPU gets here");
}

std::string implementation_name(const Int4MMImplementation& implementation, Isa isa) {
  const bool native = implementation.backend == ScaledMMBackend::native;
  return "scaled_mm_int4 " + std::string(native
                                             ? lane_name(int4_mm_lane(isa), isa)
                                             : enum_name(scaled_mm_backend_names(), implementation.backend));
}

}  // namespace oasr::kernels
