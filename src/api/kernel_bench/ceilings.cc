#include "api/kernel_bench/ceilings.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "api/device.h"
#include "api/guard.h"
#include "api/kernel_bench/problem.h"
#include "device/gpu_timing.h"
#include "kernels/peak/cuda.h"
#include "kernels/peak/op.h"

namespace oasr {
namespace kernel_bench {
namespace {

constexpr double kPeakSeconds = 0.05;  // of a lane

// The best of some copies by all threads, of more than a cache holds.
double host_copy_gbs(ThreadPool& pool) {
  constexpr std::size_t kBytes = std::size_t{64} << 20, kPiece = std::size_t{1} << 20;
  constexpr int kCopies = 8;
  Memory from(nullptr, kBytes), to(nullptr, kBytes);
  std::memset(from.data(), 1, kBytes);
  double best = 0;
  for (int i = 0; i < kCopies; ++i) {
    const auto start = std::chrono::steady_clock::now();
    pool.parallel_for(kBytes / kPiece, [&](std::int64_t piece, int) {
      const std::size_t at = static_cast<std::size_t>(piece) * kPiece;
      std::memcpy(to.data() + at, from.data() + at, kPiece);
    });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (i > 0) best = std::max(best, 2e-9 * static_cast<double>(kBytes) / took.count());  // the first gets pages
  }
  return best;
}

}  // namespace

Ceilings host_ceilings(ThreadPool& pool, Isa isa) {
  Ceilings ceilings;
  for (const auto& [kind, name] : kernels::peak_kind_names()) {
    for (const kernels::PeakLane& lane : kernels::peak_lanes(kind)) {
      if (!isa_supported(lane.isa) || !isa_covers(isa, lane.isa)) continue;
      ceilings.operands.push_back({.name = lane_ceiling(name, lane.name),
                                   .gops = kernels::peak_gops(kind, lane.isa, kPeakSeconds) * pool.threads()});
    }
  }
  ceilings.copy_gbs = host_copy_gbs(pool);
  return ceilings;
}

Ceilings gpu_ceilings(Gpu& gpu) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 30;
  Ceilings ceilings;
  for (const auto& [peak, name] : kernels::gpu_peak_names()) {
    const double best = kernels::gpu_peak_gops(gpu, peak);
    ceilings.operands.push_back({.name = std::string(name), .gops = best});
    // Where another instruction is faster: what kernels of mma.sync are to be compared with.
    const double mma_sync = kernels::gpu_peak_gops(gpu, peak, kernels::GpuPeakUnit::mma_sync);
    if (mma_sync > 0 && mma_sync < 0.99 * best) {
      ceilings.operands.push_back({.name = std::string(name) + " mma_sync", .gops = mma_sync});
    }
  }
  ceilings.copy_gbs = 1e-9 * copy_bytes_per_second(gpu, std::min(kMostBytes, gpu.free_bytes() / 4));
  ceilings.mark_us = mark_microseconds(gpu);
  return ceilings;
}

}  // namespace kernel_bench

double Ceilings::gops(std::string_view name) const {
  const auto found = std::ranges::find(operands, name, &Operands::name);
  return found == operands.end() ? 0 : found->gops;
}

Roof roof_of(const Ceilings& ceilings, std::string_view operands, double operations, double bytes) {
  const double gops = ceilings.gops(operands);
  const double computing = gops > 0 ? 1e-9 * operations / gops : 0;
  const double moving = ceilings.copy_gbs > 0 ? 1e-9 * bytes / ceilings.copy_gbs : 0;
  return {.seconds = std::max(computing, moving), .memory = moving > computing};
}

Result<Ceilings> measure_ceilings(const std::string& device, int threads) {
  return guarded([&]() -> Result<Ceilings> {
    const Device opened = TRY(open_device(device));
    if (opened.gpu != nullptr) return kernel_bench::gpu_ceilings(*opened.gpu);
    ThreadPool pool(TRY(thread_count(threads)));
    return kernel_bench::host_ceilings(pool, TRY(selected_isa()));
  });
}

}  // namespace oasr
