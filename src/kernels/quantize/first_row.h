// What several threads found not finite, as one answer that does not depend on their order.
#pragma once

#include <atomic>

#include "kernels/quantize/op.h"

namespace oasr::kernels {

class FirstRow {
 public:
  void merge(NotFinite found) {
    if (!found) return;
    std::int64_t row = row_.load(std::memory_order_relaxed);
    while ((row < 0 || found.row < row) && !row_.compare_exchange_weak(row, found.row, std::memory_order_relaxed)) {
    }
  }
  NotFinite value() const { return {row_.load(std::memory_order_relaxed)}; }

 private:
  std::atomic<std::int64_t> row_{-1};
};

}  // namespace oasr::kernels
