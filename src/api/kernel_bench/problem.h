// An operation of one shape with its memory, and the kernels that can compute it here: what bench_kernels() runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "device/memory.h"
#include "device/thread_pool.h"
#include "kernels/cuda/cublaslt.h"
#include "oasr/kernel_bench.h"

namespace oasr::kernel_bench {

// A count as a factor of operations and bytes.
inline double d(std::int64_t value) { return static_cast<double>(value); }

// Where kernels run.
struct Place {
  ThreadPool* pool = nullptr;
  Isa isa = Isa::scalar;                    // of a CPU: lanes up to this one
  Gpu* gpu = nullptr;                       // or null
  kernels::CublasLt* cublaslt = nullptr;    // or null, and why
  std::string no_cublaslt = {};
};

// One kernel. call(set) runs it on one set of the problem's memory; a Status says that the kernel can not.
struct Case {
  KernelTime time;                          // op, kernel, ceiling, chosen, missing, operations, bytes
  std::function<Status(int set)> call;
  // What set 0 becomes. Cases of one group must give the same bits; an empty group is not looked at.
  std::string group;
  std::vector<std::span<const std::byte>> result;
};

struct Problem {
  std::vector<Case> cases;
  int sets = 1;                             // of memory, so that no kernel finds its weights in a cache
  std::shared_ptr<void> memory;             // that the cases work on
};

// A row of the table of operations.
struct Op {
  KernelBenchOp info;
  std::vector<KernelShape> gpu_shapes;      // by default on a GPU; info.shapes on a CPU
  std::int64_t most_k;
  // Memory that make() takes, about.
  double (*bytes)(const Place& place, const KernelShape& shape);
  Problem (*make)(const Place& place, const KernelShape& shape);
};
std::span<const Op> ops();
const Op* find_op(std::string_view name);

// For the table: problems.
double scaled_mm_bytes(const Place& place, const KernelShape& shape);
Problem scaled_mm_problem(const Place& place, const KernelShape& shape);
double linear_bytes(const Place& place, const KernelShape& shape);
Problem linear_problem(const Place& place, const KernelShape& shape);
double rows_bytes(const Place& place, const KernelShape& shape);
Problem quantize_problem(const Place& place, const KernelShape& shape);
Problem norm_problem(const Place& place, const KernelShape& shape);

// Sets of `bytes` each that together are several times what a cache holds, if kMostSets are enough.
inline constexpr int kMostSets = 256;
int sets_for(const Place& place, double bytes);

// "avx2" of a CPU's lane as the name of its ceiling.
std::string lane_ceiling(std::string_view operands, std::string_view lane);

// Whether the lane is one of those that run here; the one that the op chooses is the best of them.
template <class Lane>
std::vector<const Lane*> lanes_here(std::span<const Lane> lanes, const Place& place) {
  std::vector<const Lane*> rows;
  for (const Lane& lane : lanes) {
    if (isa_supported(lane.isa) && isa_covers(place.isa, lane.isa)) rows.push_back(&lane);
  }
  return rows;
}

// Numbers that repeat out of step with any shape.
template <class T>
std::vector<T> some_numbers(std::int64_t count, unsigned seed, const std::function<T(std::uint32_t)>& of) {
  constexpr std::size_t kPeriod = 65'537;
  std::mt19937 engine(seed);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = i < kPeriod ? of(static_cast<std::uint32_t>(engine())) : values[i - kPeriod];
  }
  return values;
}
std::vector<float> some_floats(std::int64_t count, unsigned seed);           // in [-1, 1)
std::vector<float> some_scales(std::int64_t count, unsigned seed);           // in [0.01, 0.02)
std::vector<std::int8_t> some_int8(std::int64_t count, unsigned seed);       // -127 to 127
std::vector<std::uint16_t> some_halves(std::int64_t count, unsigned seed);   // float16 in [-1, 1)
std::vector<std::uint8_t> some_fp8(std::int64_t count, unsigned seed);       // e4m3, finite

// Sets of numbers where the kernels of a place run; each begins at a multiple of 256 bytes.
template <class T>
class Sets {
 public:
  // The same numbers in every set.
  Sets(const Place& place, int sets, std::span<const T> values) : Sets(place, sets, std::ssize(values)) {
    for (int i = 0; i < sets; ++i) {
      if (place.gpu != nullptr) {
        place.gpu->upload(at(i), values.data(), values.size_bytes());
      } else {
        std::copy(values.begin(), values.end(), at(i));
      }
    }
  }
  // Zeros.
  Sets(const Place& place, int sets, std::int64_t count)
      : count_(count),
        step_((static_cast<std::size_t>(count) * sizeof(T) + 255) / 256 * 256),
        memory_(place.gpu, static_cast<std::size_t>(sets) * step_) {
    clear(place.gpu, memory_.data(), memory_.size());
  }
  T* at(int set) { return reinterpret_cast<T*>(memory_.data() + static_cast<std::size_t>(set) * step_); }
  // Of set 0.
  std::span<const std::byte> bytes() { return {memory_.data(), static_cast<std::size_t>(count_) * sizeof(T)}; }

 private:
  std::int64_t count_;
  std::size_t step_;
  Memory memory_;
};

}  // namespace oasr::kernel_bench
