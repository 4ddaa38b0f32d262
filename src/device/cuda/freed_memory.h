// GPU memory that was given back, kept for the next who asks: cudaMalloc and cudaFree take 0.1 ms and more, and
// the second waits for all kernels.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <unordered_map>

namespace oasr {

// Of one GPU. Every function may be called by any thread.
class FreedMemory {
 public:
  FreedMemory() = default;
  ~FreedMemory() { release(); }
  FreedMemory(const FreedMemory&) = delete;
  FreedMemory& operator=(const FreedMemory&) = delete;

  // Memory that was kept, of at least `bytes` and hardly more; null: there is none.
  std::byte* take(std::size_t bytes) noexcept;
  // Memory from cudaMalloc goes out with `bytes`. If this throws, it is freed.
  void note(std::byte* memory, std::size_t bytes);
  // Comes back: is kept, or freed where enough is kept.
  void give(std::byte* memory) noexcept;
  // Frees what is kept.
  void release() noexcept;
  // Bytes that are kept.
  std::size_t bytes() const;

 private:
  mutable std::mutex mutex_;
  std::multimap<std::size_t, std::byte*> kept_;        // by size
  std::unordered_map<std::byte*, std::size_t> sizes_;  // of all that is out or kept
  std::size_t bytes_ = 0;
};

}  // namespace oasr
