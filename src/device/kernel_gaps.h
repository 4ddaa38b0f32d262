// Kernels that some NVIDIA GPUs would need and that oasr does not have: declared here, refused by name where
// a card is opened or a model is loaded, and counted by `oasr doctor`. (That a kernel is not the fastest of
// its card is no gap.)
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "device/gpu.h"

namespace oasr {

struct KernelGap {
  std::string_view name;   // "scaled-mm-int8-sm75": the op, its numbers, and the last generation without it
  std::string_view op;     // the folder of kernels/
  std::string_view needs;  // whose layers need it: "int8"; empty: every model
  int below;               // compute capabilities that have it not, 10 · major + minor: those below
  std::string_view why;
};

inline constexpr std::array kKernelGaps = {
    KernelGap{"linear-float-sm75", "linear", "", 80, "weights are read by cp.async"},
    KernelGap{"attention-float-sm75", "attention", "", 80, "keys and values are read by cp.async"},
    KernelGap{"layer-norm-float-sm75", "norm", "", 80, "rows are read by cp.async"},
    KernelGap{"quantize-int8-sm75", "quantize", "int8", 80, "the greatest of a row is found by redux.sync"},
    KernelGap{"scaled-mm-int8-sm75", "scaled_mm", "int8", 80,
              "int8 is multiplied by mma.sync of 16 x 8 x 32"},
    KernelGap{"scaled-conv-int8-sm75", "scaled_conv", "int8", 80, "its product is that of scaled_mm"},
};

// Those of a card, in the order of the table.
std::vector<KernelGap> kernel_gaps(const GpuInfo& gpu);
// Refuses a card that no model can run on.
Status check_kernel_gaps(const GpuInfo& gpu);
// Refuses layers of `numbers` ("int8") on a card that lacks kernels for them. The error has no place, which
// the caller knows.
Status check_kernel_gaps(const GpuInfo& gpu, std::string_view numbers);

// (name, what is said of it): the declared table, then how many of it each card has, and which.
std::vector<std::pair<std::string, std::string>> kernel_gap_report(std::span<const GpuInfo> gpus);

}  // namespace oasr
