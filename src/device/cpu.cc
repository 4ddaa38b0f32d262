#include "device/cpu.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/env.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

namespace oasr {
namespace {

constexpr std::array kIsaNames = {
    EnumName<Isa>{Isa::scalar, "scalar"},
    EnumName<Isa>{Isa::avx2, "avx2"},
    EnumName<Isa>{Isa::avx_vnni, "avx_vnni"},
    EnumName<Isa>{Isa::avx512, "avx512"},
    EnumName<Isa>{Isa::avx512_vnni, "avx512_vnni"},
    EnumName<Isa>{Isa::amx, "amx"},
};

// A bit for each Isa.
using IsaSet = unsigned;
constexpr IsaSet bit(Isa isa) { return 1u << static_cast<unsigned>(isa); }

constexpr int kMaxThreads = 1024;

#if defined(__x86_64__)
// Which register files the operating system saves (XCR0). The instruction is spelled as bytes so
// that this file needs no -mxsave.
std::uint64_t saved_register_files() {
  std::uint32_t low = 0, high = 0;
  __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t{high} << 32) | low;
}

// XTILEDATA is large and off until a process asks for it (arch_prctl, ARCH_REQ_XCOMP_PERM).
bool tiles_granted() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

IsaSet probe() {
  constexpr unsigned kFma = 1u << 12, kOsXsave = 1u << 27, kAvx = 1u << 28, kF16c = 1u << 29;
  constexpr unsigned kAvx2 = 1u << 5;
  constexpr unsigned kAvx512 = (1u << 16) | (1u << 17) | (1u << 30) | (1u << 31);  // F DQ BW VL
  constexpr unsigned kAvx512Vnni = 1u << 11, kAvxVnni = 1u << 4;
  constexpr unsigned kAmx = (1u << 24) | (1u << 25);  // TILE INT8
  constexpr std::uint64_t kYmmState = 0x06, kZmmState = 0xE6, kTileState = 0x60000;
  const auto all = [](auto flags, auto needed) { return (flags & needed) == needed; };

  IsaSet set = bit(Isa::scalar);
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || !all(c, kFma | kOsXsave | kAvx | kF16c)) return set;
  const std::uint64_t saved = saved_register_files();
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return set;
  if (!all(b, kAvx2) || !all(saved, kYmmState)) return set;
  set |= bit(Isa::avx2);
  unsigned a1 = 0, b1 = 0, c1 = 0, d1 = 0;
  if (a >= 1 && __get_cpuid_count(7, 1, &a1, &b1, &c1, &d1) != 0 && all(a1, kAvxVnni)) {
    set |= bit(Isa::avx_vnni);
  }
  if (!all(b, kAvx512) || !all(saved, kZmmState)) return set;
  set |= bit(Isa::avx512);
  if (!all(c, kAvx512Vnni)) return set;
  set |= bit(Isa::avx512_vnni);
  if (all(d, kAmx) && all(saved, kTileState) && tiles_granted()) set |= bit(Isa::amx);
  return set;
}
#else
IsaSet probe() { return bit(Isa::scalar); }
#endif

IsaSet supported() {
  static const IsaSet set = probe();
  return set;
}

// OASR_LAYERS_BACKEND.
Result<bool> reference_wanted() {
  const std::string name = env("OASR_LAYERS_BACKEND").value_or("auto");
  if (name == "auto" || name == "native") return false;
  if (name == "reference" || name == "torch") return true;
  return unexpected(ErrorCode::invalid_argument, "'" + name + "' is not a backend of layers", "OASR_LAYERS_BACKEND",
                    "use one of: auto, native, reference");
}

}  // namespace

std::span<const EnumName<Isa>> isa_names() { return kIsaNames; }

std::string_view isa_name(Isa isa) { return isa == Isa::reference ? "reference" : enum_name(isa_names(), isa); }

bool isa_supported(Isa isa) { return isa == Isa::reference || (supported() & bit(isa)) != 0; }

Isa detected_isa() {
  Isa best = Isa::scalar;
  for (const auto& row : kIsaNames) {
    if (isa_supported(row.value)) best = row.value;
  }
  return best;
}

Result<Isa> selected_isa() {
  const auto name = env("OASR_ISA");
  if (TRY(reference_wanted())) {
    if (!name) return Isa::reference;
    return unexpected(ErrorCode::invalid_argument,
                      "'" + *name + "' names a lane, and OASR_LAYERS_BACKEND=reference runs none", "OASR_ISA",
                      "unset one of the two");
  }
  if (!name) return detected_isa();
  const auto isa = parse_enum(isa_names(), *name);
  if (!isa) {
    return unexpected(ErrorCode::invalid_argument, "'" + *name + "' is not an instruction set",
                      "OASR_ISA", "use one of: " + enum_names(isa_names()));
  }
  if (!isa_supported(*isa)) {
    std::string names;
    for (const auto& row : kIsaNames) {
      if (isa_supported(row.value)) names += (names.empty() ? "" : ", ") + std::string(row.name);
    }
    return unexpected(ErrorCode::unsupported, "this processor or system can not run " + *name,
                      "OASR_ISA", "use one of: " + names);
  }
  return *isa;
}

Result<int> thread_count(int requested) {
  std::string where = "threads";
  if (requested < 0) {
    return unexpected(ErrorCode::invalid_argument, std::to_string(requested) + " is not a number of threads",
                      where, "give 0 for what the cgroup quota allows, or more");
  }
  if (requested == 0) {
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
