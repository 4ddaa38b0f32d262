// Scratch memory that is reserved once and viewed as matrices.
#pragma once

#include <cstdint>

#include "device/memory.h"
#include "tensor/matrix.h"

namespace oasr::layers {

class Buffer {
 public:
  Buffer() = default;
  // Room for `floats` numbers, uninitialised; on a GPU unless it is null.
  explicit Buffer(std::int64_t floats, Gpu* gpu = nullptr)
      : floats_(floats), gpu_(gpu), memory_(gpu, static_cast<std::size_t>(floats) * sizeof(float)) {}

  // The start of the buffer as a contiguous [rows, columns] matrix.
  Matrix matrix(std::int64_t rows, std::int64_t columns) {
    CHECK(rows * columns <= floats_, "the buffer is too small");
    return {reinterpret_cast<float*>(memory_.data()), rows, columns, columns};
  }
  std::int64_t floats() const { return floats_; }
  Gpu* gpu() const { return gpu_; }
  // Room for at least so many numbers; if that is more than before, what it held is lost.
  void reserve(std::int64_t floats) {
    if (floats_ < floats) *this = Buffer(floats, gpu_);
  }

 private:
  std::int64_t floats_ = 0;
  Gpu* gpu_ = nullptr;
  Memory memory_;
};

}  // namespace oasr::layers
