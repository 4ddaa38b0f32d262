// Times of single operations on a device, beside what the device can do at most.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "oasr/result.h"

namespace oasr {

// What a device reaches, measured. On a CPU of all its threads.
struct Ceilings {
  struct Operands {
    std::string name;              // "int8", "float16" of a GPU; "int8 avx2", "float32 avx2" of lanes of a CPU
    double gops = 0;               // 10^9 operations a second; a multiply-add is two
  };
  std::vector<Operands> operands;  // products of data that is not moved
  double copy_gbs = 0;             // 10^9 bytes a second of a large copy, read and written bytes counted
  double mark_us = 0;              // a GPU: what a mark between two timed layers takes
  // 0 for what the device has no instructions for.
  double gops(std::string_view name) const;
};
// `device`: cpu, cuda, cuda:N. Takes a part of a second; on a GPU up to 2 GiB of its free memory.
Result<Ceilings> measure_ceilings(const std::string& device, int threads = 0);

// The least time that operations and bytes take below ceilings: the larger of the two. 0: neither is known.
struct Roof {
  double seconds = 0;
  bool memory = false;             // the bytes are what takes the time
};
Roof roof_of(const Ceilings& ceilings, std::string_view operands, double operations, double bytes);

struct KernelShape {
  std::int64_t m = 0;              // rows
  std::int64_t n = 0;              // output channels of a product; else 0
  std::int64_t k = 0;              // input channels, or the columns of rows
};

// An operation that can be measured.
struct KernelBenchOp {
  std::string name;                // "scaled_mm"
  std::string summary;
  bool product = false;            // its shapes have n
  std::vector<KernelShape> shapes; // by default
};
const std::vector<KernelBenchOp>& kernel_bench_ops();

struct KernelBenchOptions {
  std::vector<std::string> ops;    // names of kernel_bench_ops(); none: all of them
  std::vector<KernelShape> shapes; // none: those of each op
  std::string device = "auto";     // auto, cpu, cuda, cuda:N
  int threads = 0;                 // of a CPU; 0: what the cgroup quota allows
  int repeat = 15;                 // rounds
  std::function<bool()> cancelled;
};

// One way to compute one operation of one shape.
struct KernelTime {
  std::string op;
  KernelShape shape;
  std::string kernel;              // "scaled_mm avx2", "scaled_mm wgmma m128n256", "cublaslt int8"
  std::string ceiling;             // of its products, a name in Ceilings; empty: there is none
  bool chosen = false;             // what the operation runs on this device by itself
  std::string missing;             // why it was not measured; then all below is 0
  int rounds = 0;                  // in turn with the other kernels of the shape
  int calls = 0;                   // of a round
  int sets = 0;                    // of memory, used in turn
  double median_us = 0, min_us = 0, max_us = 0;  // of one call, over the rounds
  double operations = 0;           // of one call
  double bytes = 0;                // that one call has to read and write
  double roof_us = 0;              // the least that they take; 0: not known
  bool memory_bound = false;       // the bytes are what takes that
  double to_cublaslt_int8 = 0;     // speed, in speeds of cuBLASLt's int8 product of the shape; 0: it was not measured
};

struct KernelBenchReport {
  std::string device;              // cpu or cuda
  std::string name;                // "NVIDIA H200"
  std::string isa;                 // of a CPU, the best that is used: "avx512_vnni"
  int threads = 0;                 // of a CPU
  std::string compute_capability;  // of a GPU, "9.0"
  int multiprocessors = 0, clock_mhz = 0, memory_clock_mhz = 0;  // of a GPU, clocks at most
  std::int64_t memory_bytes = 0;
  std::string driver;              // of a GPU: "580.159.04"; empty: not known
  std::string driver_cuda, runtime;  // highest CUDA of the driver, and CUDA of this build
  std::string cublaslt;            // version; empty: not there
  std::string no_cublaslt;         // why; empty: it is there, or nothing asked for it
  std::string method;
  Ceilings ceilings;
  std::vector<KernelTime> times;   // shape by shape
};

// Errors: invalid_argument (an op, a shape, a device), unsupported (a GPU that is not there, memory that a shape would
// take), cancelled; internal where two kernels of ours give different bits.
Result<KernelBenchReport> bench_kernels(const KernelBenchOptions& options);

}  // namespace oasr
