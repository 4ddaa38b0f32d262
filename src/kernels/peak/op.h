// The most that one core can do in registers, measured: the roof that products are compared with.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/enum_table.h"
#include "device/cpu.h"

namespace oasr::kernels {

enum class PeakKind : std::uint8_t {
  int8,     // int8 · int8 into int32, as scaled_mm() does it
  float32,  // fma, as linear() does it
};
std::span<const EnumName<PeakKind>> peak_kind_names();

// 10⁹ operations a second (a multiply-add is two) of the calling thread, with the instructions that the
// products' lane for `isa` uses: the best of the runs of about 0.1 ms that fit into `seconds`, one at
// least. The best, because a neighbour on the core can only make a run longer. Allocates nothing.
double peak_gops(PeakKind kind, Isa isa, double seconds);

// A row of a lane table: a register-only loop with enough independent chains.
struct PeakLane {
  std::string_view name;  // "avx512_vnni": what scaled_mm_lane() or linear_lane() is called
  Isa isa;
  long rounds;                 // that take about 0.1 ms
  double (*run)(long rounds);  // returns the operations
};
std::span<const PeakLane> peak_lanes(PeakKind kind);
// The lane that peak_gops() uses for an Isa.
const PeakLane& peak_lane(PeakKind kind, Isa isa);

}  // namespace oasr::kernels
