#include "kernels/scaled_mm/implementation.h"

#include <array>

#include "base/check.h"

namespace oasr::kernels {
namespace {

constexpr ScaledMMImplementation kNative = {
    {.backend = ScaledMMBackend::native,
     .mm = scaled_mm,
     .mm_quant = scaled_mm_quant,
     .dynamic = scaled_mm_dynamic,
     .dynamic_quant = scaled_mm_dynamic,
     .fixed = scaled_mm_static,
     .fixed_quant = scaled_mm_static,
     .reserve = scaled_mm_reserve},
    scaled_conv_static,
};

// The definitions need no context.
constexpr ScaledMMImplementation kReference = {
    {.backend = ScaledMMBackend::reference,
     .mm = [](ExecContext&, const ScaledMMArgs& args,
              const FloatOutput& out) { scaled_mm_reference(args, out); },
     .mm_quant = [](ExecContext&, const ScaledMMArgs& args,
                    const Int8Output& out) { return scaled_mm_quant_reference(args, out); },
     .dynamic = [](ExecContext&, const DynamicScaledMMArgs& args,
                   const FloatOutput& out) { return scaled_mm_dynamic_reference(args, out); },
     .dynamic_quant = [](ExecContext&, const DynamicScaledMMArgs& args,
                         const Int8Output& out) { return scaled_mm_dynamic_reference(args, out); },
     .fixed = [](ExecContext&, const StaticScaledMMArgs& args,
                 const FloatOutput& out) { return scaled_mm_static_reference(args, out); },
     .fixed_quant = [](ExecContext&, const StaticScaledMMArgs& args,
                       const Int8Output& out) { return scaled_mm_static_reference(args, out); },
     .reserve = [](ExecContext&, std::int64_t) {}},
    [](ExecContext&, const StaticScaledConvArgs& args,
       const FloatOutput& out) { return scaled_conv_static_reference(args, out); },
};

constexpr std::array kImplementations = {kNative, kReference};

}  // namespace

std::span<const ScaledMMImplementation> scaled_mm_implementations() { return kImplementations; }

const ScaledMMImplementation& scaled_mm_implementation(ScaledMMBackend backend) {
  for (const ScaledMMImplementation& row : kImplementations) {
    if (row.backend == backend) return row;
  }
  CHECK(false, "every backend has an implementation");
}

std::string implementation_name(const ScaledMMImplementation& implementation, Isa isa) {
  const bool native = implementation.backend == ScaledMMBackend::native;
  return "scaled_mm " + std::string(native ? scaled_mm_lane(isa).name
                                           : enum_name(scaled_mm_backend_names(), implementation.backend));
}

}  // namespace oasr::kernels
