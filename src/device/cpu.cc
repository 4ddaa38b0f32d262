#include "device/cpu.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/env.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace oasr {
namespace {

constexpr std::array kIsaNames = {
    EnumName<Isa>{Isa::scalar, "scalar"},
    EnumName<Isa>{Isa::avx2, "avx2"},
    EnumName<Isa>{Isa::avx512, "avx512"},
};

constexpr int kMaxThreads = 1024;

#if defined(__x86_64__)
// Which register files the operating system saves (XCR0). The instruction is spelled as bytes so
// that this file needs no -mxsave.
std::uint64_t saved_register_files() {
  std::uint32_t low = 0, high = 0;
  __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t{high} << 32) | low;
}

Isa probe_isa() {
  constexpr unsigned kFma = 1u << 12, kOsXsave = 1u << 27, kAvx = 1u << 28, kF16c = 1u << 29;
  constexpr unsigned kAvx2 = 1u << 5;
  constexpr unsigned kAvx512 = (1u << 16) | (1u << 17) | (1u << 30) | (1u << 31);  // F DQ BW VL
  constexpr std::uint64_t kYmmState = 0x06, kZmmState = 0xE6;

  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return Isa::scalar;
  constexpr unsigned kNeeded = kFma | kOsXsave | kAvx | kF16c;
  if ((c & kNeeded) != kNeeded) return Isa::scalar;
  const std::uint64_t saved = saved_register_files();
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return Isa::scalar;
  if ((b & kAvx2) == 0 || (saved & kYmmState) != kYmmState) return Isa::scalar;
  if ((b & kAvx512) != kAvx512 || (saved & kZmmState) != kZmmState) return Isa::avx2;
  return Isa::avx512;
}
#else
Isa probe_isa() { return Isa::scalar; }
#endif

}  // namespace

std::span<const EnumName<Isa>> isa_names() { return kIsaNames; }

Isa detected_isa() {
  static const Isa isa = probe_isa();
  return isa;
}

Result<Isa> selected_isa() {
  const auto name = env("OASR_ISA");
  if (!name) return detected_isa();
  const auto isa = parse_enum(isa_names(), *name);
  if (!isa) {
    return unexpected(ErrorCode::invalid_argument, "'" + *name + "' is not an instruction set",
                      "OASR_ISA", "use one of: " + enum_names(isa_names()));
  }
  if (*isa > detected_isa()) {
    return unexpected(ErrorCode::unsupported, "this processor or system can not run " + *name,
                      "OASR_ISA",
                      "use at most " + std::string(enum_name(isa_names(), detected_isa())));
  }
  return *isa;
}

Result<int> thread_count(int requested) {
  std::string where = "threads";
  if (requested <= 0) {
    const auto text = env("OASR_THREADS");
    if (!text) {
      const CpuInfo info = cpu_info();
      if (info.cgroup_quota <= 0) return info.online_cores;
      return std::clamp(static_cast<int>(std::ceil(info.cgroup_quota)), 1, info.online_cores);
    }
    where = "OASR_THREADS";
    const char* end = text->data() + text->size();
    const auto [rest, error] = std::from_chars(text->data(), end, requested);
    if (error != std::errc() || rest != end || requested <= 0) {
      return unexpected(ErrorCode::invalid_argument, "'" + *text + "' is not a number of threads",
                        where, "give a whole number from 1 to " + std::to_string(kMaxThreads));
    }
  }
  if (requested > kMaxThreads) {
    return unexpected(ErrorCode::invalid_argument, std::to_string(requested) + " threads are too many",
                      where, "give a whole number from 1 to " + std::to_string(kMaxThreads));
  }
  return requested;
}

}  // namespace oasr
