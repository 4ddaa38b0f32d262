// Helpers of the tests that compare a GPU's kernels with the references.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "device/memory.h"
#include "device/thread_pool.h"

namespace oasr::kernels {

// Skips, visibly, where no GPU can be used.
class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = Gpu::open(0);
    if (!opened) GTEST_SKIP() << "no GPU: " << opened.error().what;
    gpu_ = std::move(*opened);
    context_ = {.pool = &pool_, .isa = detected_isa(), .observer = nullptr, .gpu = gpu_.get()};
  }

  // Host values on the GPU, between guards that finish() looks at.
  template <class T>
  class Array {
   public:
    Array(Gpu& gpu, std::span<const T> values) : gpu_(&gpu), count_(values.size()) {
      std::vector<std::byte> bytes(2 * kGuard + values.size_bytes(), kPoison);
      if (!values.empty()) std::memcpy(bytes.data() + kGuard, values.data(), values.size_bytes());
      memory_ = Memory(&gpu, bytes.size());
      gpu.upload(memory_.data(), bytes.data(), bytes.size());
    }
    T* data() { return reinterpret_cast<T*>(memory_.data() + kGuard); }
    // What is there now; fails the test when a kernel wrote outside.
    std::vector<T> values() {
      std::vector<std::byte> bytes(memory_.size());
      gpu_->download(bytes.data(), memory_.data(), bytes.size());
      for (std::size_t i = 0; i < kGuard; ++i) {
        EXPECT_EQ(bytes[i], kPoison) << "written before the array";
        EXPECT_EQ(bytes[bytes.size() - 1 - i], kPoison) << "written after the array";
      }
      std::vector<T> result(count_);
      if (count_ > 0) std::memcpy(result.data(), bytes.data() + kGuard, count_ * sizeof(T));
      return result;
    }

   private:
    static constexpr std::size_t kGuard = 256;  // keeps the alignment
    static constexpr std::byte kPoison{0x7f};   // as a float, 3.4e38
    Gpu* gpu_;
    std::size_t count_;
    Memory memory_;
  };
  template <class T>
  Array<T> upload(const std::vector<T>& values) {
    return Array<T>(*gpu_, values);
  }
  // Room for results: every value is NaN, or 0x7f of integers.
  template <class T>
  Array<T> room(std::int64_t count) {
    std::vector<T> values(static_cast<std::size_t>(count));
    std::memset(static_cast<void*>(values.data()), 0x7f, values.size() * sizeof(T));
    if constexpr (std::is_same_v<T, float>) std::fill(values.begin(), values.end(), std::nanf(""));
    return Array<T>(*gpu_, values);
  }

  // The lowest row that was reported since the last call, or -1.
  std::int64_t reported_row() {
    struct Lowest : RunObserver {
      void not_finite(std::string_view, std::int64_t found) override { row = found; }
      std::int64_t row = -1;
    } lowest;
    gpu_->wait();
    gpu_->tell(lowest);
    return lowest.row;
  }

  std::unique_ptr<Gpu> gpu_;
  ThreadPool pool_{1};
  ExecContext context_;
};

// Large sweeps are a test a case, so that shards of a program (GTEST_TOTAL_SHARDS; scripts/sanitize_gpu.sh) spread
// them over processes. A case draws its numbers with a seed of its place in the sweep.
template <class Values, class T>
unsigned place_in(const Values& values, const T& value) {
  return static_cast<unsigned>(std::ranges::find(values, value) - std::begin(values));
}

}  // namespace oasr::kernels
