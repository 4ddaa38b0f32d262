// Ceilings of a device that is open.
#pragma once

#include "device/thread_pool.h"
#include "oasr/kernel_bench.h"

namespace oasr::kernel_bench {

// Of the lanes of products up to `isa`, on all threads of the pool.
Ceilings host_ceilings(ThreadPool& pool, Isa isa);
Ceilings gpu_ceilings(Gpu& gpu);

}  // namespace oasr::kernel_bench
