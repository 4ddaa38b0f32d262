// Matrix products of NVIDIA's cuBLASLt, to measure and to check our own against. The library is loaded when
// it is asked for and never linked: it is 500 MB, and nothing that oasr serves by itself needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "device/gpu.h"

namespace oasr::kernels {

// Not thread-safe. Works on the queue of one Gpu, which must outlive it.
class CublasLt {
 public:
  // Of a and w. Sums and y: int32 of int8; float32, rounded once to bfloat16, of fp8 (with the fast
  // accumulation that the library offers for it); float32, rounded once to the type of a and w, of the
  // others.
  enum class Type : std::uint8_t { int8, fp8_e4m3, float16, bfloat16 };
  // Which of the kernels that the library proposes for a shape: its first proposal, or the fastest of
  // kProposals, measured on the memory of the first product of the shape.
  enum class Choice : std::uint8_t { first, fastest };
  static constexpr int kProposals = 8;
  // Elements from row to row; 0: the rows lie behind each other.
  struct Strides {
    std::int64_t a = 0, w = 0;
  };

  // Errors: unsupported where the library is not found or does not work on the card, and in a build without
  // it.
  static Result<std::unique_ptr<CublasLt>> open(Gpu& gpu, Choice choice = Choice::fastest);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  std::string version() const;  // "13.1.0"

  // The shapes that product() takes: rows of a, w and y must begin at multiples of 16 bytes, so k is a
  // multiple of 16 (int8, fp8) or 8. n is one of 16 (fp8: the library's rule) or 8. Any m >= 1, though the
  // library may have no kernel for few rows of int8 (32 are enough on every card).
  static constexpr bool takes(Type type, std::int64_t n, std::int64_t k) {
    const std::int64_t of_k = type == Type::int8 || type == Type::fp8_e4m3 ? 16 : 8;
    const std::int64_t of_n = type == Type::fp8_e4m3 ? 16 : 8;
    return n >= 1 && k >= 1 && n % of_n == 0 && k % of_k == 0;
  }

  // y[m, n] = a[m, k] · w[n, k]ᵀ, row-major, all in the GPU's memory at multiples of 16 bytes (strides as
  // well); rows of y lie behind each other. Put in after what the queue holds; within a section it cuts it
  // (Gpu::foreign()). What the product of a shape needs is made at its first use, which with Choice::fastest
  // waits for the GPU. Errors: invalid_argument for a shape or memory that is not taken; unsupported where
  // the library has no kernel. Throws GpuError and GpuOutOfMemory as Gpu does.
  Status product(Type type, std::int64_t m, std::int64_t n, std::int64_t k, const void* a, const void* w,
                 void* y, Strides strides);
  Status product(Type type, std::int64_t m, std::int64_t n, std::int64_t k, const void* a, const void* w,
                 void* y) {
    return product(type, m, n, k, a, w, y, Strides{});
  }

 private:
  struct State;
  explicit CublasLt(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace oasr::kernels
