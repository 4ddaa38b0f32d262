#include <array>

#include "kernels/peak/lanes.h"
#include "kernels/peak/op.h"

namespace oasr::kernels {
namespace {

constexpr std::array kInt8 = {
    PeakLane{.name = "scalar", .isa = Isa::scalar, .rounds = 20'000, .run = int8_peak_scalar},
    PeakLane{.name = "avx2", .isa = Isa::avx2, .rounds = 30'000, .run = int8_peak_avx2},
    PeakLane{.name = "avx_vnni", .isa = Isa::avx_vnni, .rounds = 40'000, .run = int8_peak_avx_vnni},
    PeakLane{.name = "avx512_vnni", .isa = Isa::avx512_vnni, .rounds = 20'000, .run = int8_peak_avx512_vnni},
    PeakLane{.name = "amx", .isa = Isa::amx, .rounds = 4'000, .run = int8_peak_amx},
};

constexpr std::array kFloat32 = {
    PeakLane{.name = "scalar", .isa = Isa::scalar, .rounds = 400, .run = float32_peak_scalar},
    PeakLane{.name = "avx2", .isa = Isa::avx2, .rounds = 40'000, .run = float32_peak_avx2},
    PeakLane{.name = "avx512", .isa = Isa::avx512, .rounds = 40'000, .run = float32_peak_avx512},
};

}  // namespace

std::span<const PeakLane> peak_lanes(PeakKind kind) {
  return kind == PeakKind::int8 ? std::span<const PeakLane>(kInt8) : kFloat32;
}

}  // namespace oasr::kernels
