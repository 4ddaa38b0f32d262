#include "device/cuda/freed_memory.h"

#include <cuda_runtime_api.h>

#include <new>

namespace oasr {
namespace {

constexpr std::size_t kMost = std::size_t{1} << 30;        // bytes that are kept
constexpr std::size_t kLargest = std::size_t{256} << 20;   // of one piece

// Bytes of a kept piece that may lie idle behind those that were asked for.
std::size_t idle(std::size_t bytes) { return bytes / 4 + 4096; }

}  // namespace

std::byte* FreedMemory::take(std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = kept_.lower_bound(bytes);
  if (found == kept_.end() || found->first > bytes + idle(bytes)) return nullptr;
  std::byte* memory = found->second;
  bytes_ -= found->first;
  kept_.erase(found);
  return memory;
}

void FreedMemory::note(std::byte* memory, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  try {
    sizes_.emplace(memory, bytes);
  } catch (...) {
    cudaFree(memory);
    throw;
  }
}

void FreedMemory::give(std::byte* memory) noexcept {
  if (memory == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    const auto size = sizes_.find(memory);
    if (size != sizes_.end()) {
      if (size->second <= kLargest && bytes_ + size->second <= kMost) {
        try {
          kept_.emplace(size->second, memory);
          bytes_ += size->second;
          return;
        } catch (const std::bad_alloc&) {  // no memory to remember it by: it goes
        }
      }
      sizes_.erase(size);
    }
  }
  cudaFree(memory);
}

void FreedMemory::release() noexcept {
  const std::lock_guard lock(mutex_);
  for (const auto& [size, memory] : kept_) {
    sizes_.erase(memory);
    cudaFree(memory);
  }
  kept_.clear();
  bytes_ = 0;
}

std::size_t FreedMemory::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace oasr
