// Memory for keys and values of many sequences and layers, reserved once.
#pragma once

#include <cstdint>
#include <vector>

#include "device/memory.h"
#include "device/thread_pool.h"
#include "kernels/attention/op.h"

namespace oasr::cache {

// `slots` sequences × `layers` caches of one geometry in one block of memory. The pages of a slot
// become resident when they are first written. Not thread-safe.
class KvPool {
 public:
  struct Geometry {
    int slots = 0, layers = 0;
    int heads = 0, head_dim = 0;
    std::int64_t capacity = 0;  // positions a slot holds
    DType storage = DType::f32;
  };
  // The memory of such a pool.
  static std::size_t bytes(const Geometry& geometry);
  // In memory of a GPU unless it is null.
  explicit KvPool(const Geometry& geometry, Gpu* gpu = nullptr);

  const Geometry& geometry() const { return geometry_; }
  kernels::KvCache& at(int slot, int layer) {
    return caches_[static_cast<std::size_t>(slot * geometry_.layers + layer)];
  }

  // Positions that the slot holds (between forward passes, all layers hold the same).
  std::int64_t length(int slot) const {
    return caches_[static_cast<std::size_t>(slot * geometry_.layers)].length;
  }
  // Forgets positions from `length` on.
  void truncate(int slot, std::int64_t length);

  struct Copy {
    int from = 0, to = 0;
  };
  // Copies whole slots on the pool of `context`. No slot is both a source and a target.
  void copy(ExecContext& context, std::span<const Copy> copies);

 private:
  Geometry geometry_;
  Memory memory_;
  std::vector<kernels::KvCache> caches_;
  std::vector<kernels::CopyArgs> copies_;  // of the running copy()
};

}  // namespace oasr::cache
