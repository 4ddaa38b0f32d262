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

std::span<float> HostFloats::room(std::size_t count) {
  if (count > size_) {
    release();
    const std::size_t bytes = count * sizeof(float);
    data_ = reinterpret_cast<float*>(gpu_ != nullptr ? gpu_->allocate_host(bytes)
                                                     : static_cast<std::byte*>(::operator new(bytes)));
    size_ = count;
  }
  return {data_, count};
}

void HostFloats::release() noexcept {
  auto* memory = reinterpret_cast<std::byte*>(std::exchange(data_, nullptr));
  size_ = 0;
  if (gpu_ != nullptr) {
    if (memory != nullptr) gpu_->free_host(memory);
  } else {
    ::operator delete(memory);
  }
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
