#include "device/memory.h"

#include <cstring>

namespace oasr {

Memory::Memory(Gpu* gpu, std::size_t bytes) : gpu_(gpu), size_(bytes) {
  if (gpu != nullptr) {
    device_ = gpu->allocate(bytes);
  } else {
    host_ = AlignedBuffer(bytes);
  }
}

void Memory::swap(Memory& other) noexcept {
  std::swap(gpu_, other.gpu_);
  std::swap(device_, other.device_);
  std::swap(host_, other.host_);
  std::swap(size_, other.size_);
}

void clear(Gpu* gpu, void* memory, std::size_t bytes) {
  if (gpu != nullptr) {
    gpu->zero(memory, bytes);
  } else {
    std::memset(memory, 0, bytes);
  }
}

void to_device(Gpu* gpu, float* to, std::span<const float> from) {
  if (gpu != nullptr) {
    gpu->upload(to, from.data(), from.size_bytes());
  } else if (!from.empty()) {
    std::memcpy(to, from.data(), from.size_bytes());
  }
}

void Floats::place(Gpu& gpu) {
  if (values_.empty()) return;
  const std::size_t bytes = values_.size() * sizeof(float);
  device_ = Memory(&gpu, bytes);
  gpu.upload(device_.data(), values_.data(), bytes);
}

}  // namespace oasr
