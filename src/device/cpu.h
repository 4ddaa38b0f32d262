// What this processor can do, and how many threads this process may use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/enum_table.h"
#include "base/result.h"

namespace oasr {

// Instruction sets with kernel lanes, the better the later.
enum class Isa : std::uint8_t {
  reference,    // no lane at all: ops run the plain loops that define them, slow, the same bits
  scalar,       // plain C++ (x86-64-v2)
  avx2,         // AVX2 + FMA + F16C
  avx_vnni,     // + VNNI in 256 bits (AVX-VNNI)
  avx512,       // AVX2 + AVX-512 F, BW, VL, DQ
  avx512_vnni,  // + AVX-512 VNNI
  amx,          // + AMX-TILE and AMX-INT8
};
std::span<const EnumName<Isa>> isa_names();  // those with lanes
std::string_view isa_name(Isa isa);          // every one

// Whether a lane for `lane` runs where `isa` is chosen: each Isa covers those before it, except that
// processors with AVX-512 need not have avx_vnni.
constexpr bool isa_covers(Isa isa, Isa lane) {
  return lane <= isa && (lane != Isa::avx_vnni || isa == Isa::avx_vnni);
}

// Whether the processor and the operating system support an Isa. The first call asks the system for
// the use of AMX tiles, which a process has to (Linux 5.16; a grant is for all threads).
bool isa_supported(Isa isa);

// The best Isa that is supported.
Isa detected_isa();

// detected_isa(), or OASR_ISA, or reference where OASR_LAYERS_BACKEND says so. A value that is unknown or not
// supported is an error, never ignored, and so are an OASR_ISA and the reference at once.
Result<Isa> selected_isa();

struct CpuInfo {
  std::string model;             // "Intel(R) Xeon(R) Processor"
  std::string features;          // the flags that matter here, space-separated
  int online_cores = 1;          // of the affinity mask
  double cgroup_quota = 0;       // cores allowed by cpu.max (v2) or cfs quota (v1); 0: no limit
  std::size_t l1d_bytes = 0, l2_bytes = 0, l3_bytes = 0;
  std::size_t memory_bytes = 0;  // available to the process (cgroup limit or physical)
};
// Reads /proc and /sys below `root` (tests give a fake tree).
CpuInfo cpu_info(const std::string& root = "/");

// Threads for `requested` (0 or less: OASR_THREADS, else ceil(quota) bounded by the affinity mask).
Result<int> thread_count(int requested);

}  // namespace oasr
