// What this processor can do, and how many threads this process may use.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/enum_table.h"
#include "base/result.h"

namespace oasr {

// Instruction sets with kernel lanes, in rising order. A lane runs where `isa <= cpu_isa()`.
enum class Isa : std::uint8_t {
  scalar,  // plain C++ (x86-64-v2)
  avx2,    // AVX2 + FMA + F16C
  avx512,  // AVX-512 F, BW, VL, DQ
};
std::span<const EnumName<Isa>> isa_names();

// The highest Isa that the processor and the operating system support.
Isa detected_isa();

// detected_isa(), lowered by OASR_ISA. An OASR_ISA that is unknown or higher than the processor
// is an error, never ignored.
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
