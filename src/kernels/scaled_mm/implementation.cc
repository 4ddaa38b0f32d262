#include "kernels/scaled_mm/implementation.h"

#include <array>

#include "base/check.h"
#include "kernels/lane_choice.h"
#include "kernels/scaled_conv/cuda.h"
#include "kernels/scaled_mm/cublaslt.h"
#include "kernels/scaled_mm/cuda.h"

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

Gpu& gpu_of(const ExecContext& context) {
  CHECK(context.gpu != nullptr, "a backend of GPUs without one");
  return *context.gpu;
}

// What is not finite is reported by the GPU (kernels/scaled_mm/cuda.h).
template <ScaledMMBackend kBackend>
constexpr ScaledMMImplementation on_gpu() {
  constexpr auto run = [](ExecContext& context, const auto& args, const auto& out) {
    scaled_mm_cuda(gpu_of(context), args, out, kBackend);
    return NotFinite{};
  };
  return {{.backend = kBackend,
           .mm = [](ExecContext& context, const ScaledMMArgs& args,
                    const FloatOutput& out) { scaled_mm_cuda(gpu_of(context), args, out, kBackend); },
           .mm_quant = run,
           .dynamic = run,
           .dynamic_quant = run,
           .fixed = run,
           .fixed_quant = run,
           .reserve = [](ExecContext&, std::int64_t) {}},
          [](ExecContext& context, const StaticScaledConvArgs& args, const FloatOutput& out) {
            scaled_conv_cuda(gpu_of(context), args, out, kBackend);
            return NotFinite{};
          }};
}

constexpr std::array kImplementations = {kNative, kReference, on_gpu<ScaledMMBackend::mma_sync>(),
                                         on_gpu<ScaledMMBackend::cublaslt>()};

}  // namespace

std::span<const ScaledMMImplementation> scaled_mm_implementations() { return kImplementations; }

const ScaledMMImplementation& scaled_mm_implementation(ScaledMMBackend backend) {
  for (const ScaledMMImplementation& row : kImplementations) {
    if (row.backend == backend) return row;
  }
  CHECK(false, "every backend has an implementation");
}

Status check_product(const ScaledMMImplementation& implementation, std::int64_t n, std::int64_t k) {
  if (implementation.backend != ScaledMMBackend::cublaslt || cublaslt_takes(n, k)) return {};
  return unexpected(ErrorCode::unsupported,
                    "cuBLASLt multiplies int8 where the input is a multiple of 16 wide and the output a multiple of 8, "
                    "at most 524288, and this goes from " +
                        std::to_string(k) + " to " + std::to_string(n),
                    {}, "unset OASR_SCALED_MM_BACKEND");
}

Status prepare(const ScaledMMImplementation& implementation, Gpu& gpu) {
  return implementation.backend == ScaledMMBackend::cublaslt ? open_cublaslt(gpu) : Status{};
}

std::string implementation_name(const ScaledMMImplementation& implementation, Isa isa) {
  const bool native = implementation.backend == ScaledMMBackend::native;
  return "scaled_mm " + std::string(native ? lane_name(scaled_mm_lane(isa), isa)
                                           : enum_name(scaled_mm_backend_names(), implementation.backend));
}

std::string implementation_name(const ScaledMMImplementation& implementation, const GpuInfo& gpu) {
  CHECK(runs_on(implementation.backend, true), "a backend of CPUs on a GPU");
  if (implementation.backend == ScaledMMBackend::native) {
    return scaled_mm_has_wgmma(gpu) ? "scaled_mm wgmma+mma_sync" : "scaled_mm mma_sync";
  }
  return "scaled_mm " + std::string(enum_name(scaled_mm_backend_names(), implementation.backend));
}

}  // namespace oasr::kernels
