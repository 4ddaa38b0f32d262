// Memory where the kernels of a context run: on the host, or on a GPU.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "device/gpu.h"
#include "tensor/tensor.h"

namespace oasr {

// Uninitialised bytes, aligned to at least 64. Of a GPU, which must outlive them, they are for its kernels only.
class Memory {
 public:
  Memory() = default;
  // gpu: null for the host.
  Memory(Gpu* gpu, std::size_t bytes);
  Memory(Memory&& other) noexcept { swap(other); }
  Memory& operator=(Memory&& other) noexcept {
    Memory taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~Memory() {
    if (gpu_ != nullptr) gpu_->free(device_);
  }

  std::byte* data() { return gpu_ != nullptr ? device_ : host_.data(); }
  const std::byte* data() const { return gpu_ != nullptr ? device_ : host_.data(); }
  std::size_t size() const { return size_; }

 private:
  void swap(Memory& other) noexcept;

  Gpu* gpu_ = nullptr;
  std::byte* device_ = nullptr;
  AlignedBuffer host_;
  std::size_t size_ = 0;
};

// Floats on the host, where a GPU (null: there is none) copies to at full speed.
class HostFloats {
 public:
  explicit HostFloats(Gpu* gpu = nullptr) : gpu_(gpu) {}
  ~HostFloats() { release(); }
  HostFloats(const HostFloats&) = delete;
  HostFloats& operator=(const HostFloats&) = delete;

  // Room for `count` numbers, uninitialised; borrowed until the next call.
  std::span<float> room(std::size_t count);

 private:
  void release() noexcept;

  Gpu* gpu_;
  float* data_ = nullptr;
  std::size_t size_ = 0;
};

// Sets memory of a GPU, or of the host (null), to zero.
void clear(Gpu* gpu, void* memory, std::size_t bytes);

// Copies floats of the host to memory of a GPU, or of the host (null).
void to_device(Gpu* gpu, float* to, std::span<const float> from);

// Numbers of a layer (a bias, scales): on the host, and once they are placed also on a GPU, for its kernels.
class Floats {
 public:
  Floats() = default;
  Floats(std::vector<float> values) : values_(std::move(values)) {}  // NOLINT: a vector that can be placed
  void place(Gpu& gpu);

  const std::vector<float>& values() const { return values_; }  // on the host
  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  // For kernels, on the GPU once placed; null when there are none.
  const float* data() const {
    if (values_.empty()) return nullptr;
    return device_.size() > 0 ? reinterpret_cast<const float*>(device_.data()) : values_.data();
  }

 private:
  std::vector<float> values_;
  Memory device_;
};

}  // namespace oasr
