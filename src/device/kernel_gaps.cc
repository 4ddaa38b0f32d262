#include "device/kernel_gaps.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace oasr {
namespace {

std::string capability(int number) { return fmt::format("{}.{}", number / 10, number % 10); }

std::string names_of(const std::vector<KernelGap>& gaps) {
  std::string text;
  for (const KernelGap& gap : gaps) text += (text.empty() ? "" : ", ") + std::string(gap.name);
  return text;
}

// Those of `gaps` that layers of `needs` meet.
std::vector<KernelGap> needed(const std::vector<KernelGap>& gaps, std::string_view needs) {
  std::vector<KernelGap> found;
  std::ranges::copy_if(gaps, std::back_inserter(found),
                       [&](const KernelGap& gap) { return gap.needs == needs; });
  return found;
}

Status refuse(const GpuInfo& gpu, const std::vector<KernelGap>& gaps, std::string where) {
  if (gaps.empty()) return {};
  const int least = std::ranges::max_element(gaps, {}, &KernelGap::below)->below;
  return unexpected(
      ErrorCode::unsupported,
      fmt::format("{} is an sm_{}{}, for which kernels are missing: {}", gpu.name, gpu.major, gpu.minor,
                  names_of(gaps)),
      std::move(where),
      fmt::format("use --device cpu, or a card of compute capability {} or later", capability(least)));
}

}  // namespace

std::vector<KernelGap> kernel_gaps(const GpuInfo& gpu) {
  std::vector<KernelGap> gaps;
  std::ranges::copy_if(kKernelGaps, std::back_inserter(gaps),
                       [&](const KernelGap& gap) { return 10 * gpu.major + gpu.minor < gap.below; });
  return gaps;
}

Status check_kernel_gaps(const GpuInfo& gpu) {
  return refuse(gpu, needed(kernel_gaps(gpu), ""), "device cuda");
}

Status check_kernel_gaps(const GpuInfo& gpu, std::string_view numbers) {
  return refuse(gpu, needed(kernel_gaps(gpu), numbers), {});
}

std::vector<std::pair<std::string, std::string>> kernel_gap_report(std::span<const GpuInfo> gpus) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const KernelGap& gap : kKernelGaps) {
    rows.emplace_back(gap.name,
                      fmt::format("below compute capability {}: {}", capability(gap.below), gap.why));
  }
  for (const GpuInfo& gpu : gpus) {
    const auto gaps = kernel_gaps(gpu);
    rows.emplace_back(fmt::format("cuda:{}", gpu.index),
                      gaps.empty()
                          ? fmt::format("none of {}", kKernelGaps.size())
                          : fmt::format("{} of {}: {}", gaps.size(), kKernelGaps.size(), names_of(gaps)));
  }
  return rows;
}

}  // namespace oasr
