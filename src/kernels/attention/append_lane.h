// kv_append() for any instruction set: the template that the files cpu_*.cc instantiate.
#pragma once

#include <cstdint>

#include "kernels/attention/layout.h"

namespace oasr::kernels {

template <class S>
class KvAppendLaneOf {
 public:
  static void run(const AppendArgs& args, std::int64_t head) {
    if (args.kv->storage == DType::f32) {
      run_as(args, head, reinterpret_cast<float*>(args.kv->data));
    } else {
      run_as(args, head, reinterpret_cast<Half*>(args.kv->data));
    }
  }

 private:
  static constexpr std::int64_t kDepth = 64;  // dimensions of keys that are turned at once

  template <class T>
  static void run_as(const AppendArgs& args, std::int64_t head, T* data) {
    const KvLayout layout(*args.kv);
    const std::int64_t first = args.kv->length, dim = args.kv->head_dim;
    for (std::int64_t i = 0; i < args.count && args.v != nullptr; ++i) {
      const float* v = args.v + i * args.ldv + head * dim;
      T* to = data + layout.value(head, first + i, 0);
      for (std::int64_t d = 0; d < dim; d += 8) store_eight(to + d, v + d);
    }
    std::int64_t i = 0;
    while (i < args.count) {
      const std::int64_t in_panel = kKeys - (first + i) % kKeys;
      const std::int64_t count = args.count - i < in_panel ? args.count - i : in_panel;
      const float* k = args.k + i * args.ldk + head * dim;
      T* to = data + layout.key(head, first + i, 0);
      for (std::int64_t d = 0; d < dim; d += kDepth) {
        const std::int64_t depth = dim - d < kDepth ? dim - d : kDepth;
        turn(k + d, args.ldk, count, depth, to + d * kKeys);
      }
      i += count;
    }
  }

  // to[d · kKeys + i] = k[i · ldk + d] for `count` keys of one panel.
  template <class T>
  static void turn(const float* k, std::int64_t ldk, std::int64_t count, std::int64_t depth, T* to) {
    alignas(64) float block[kDepth * kKeys];
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t d = 0; d < depth; ++d) block[d * kKeys + i] = k[i * ldk + d];
    }
    for (std::int64_t d = 0; d < depth; ++d) {
      if (count == kKeys) {
        store_eight(to + d * kKeys, block + d * kKeys);
        store_eight(to + d * kKeys + 8, block + d * kKeys + 8);
      } else {
        for (std::int64_t i = 0; i < count; ++i) S::store_one(to + d * kKeys + i, block[d * kKeys + i]);
      }
    }
  }

  static void store_eight(float* to, const float* from) {
    for (int i = 0; i < 8; ++i) to[i] = from[i];
  }
  static void store_eight(Half* to, const float* from) { S::store_eight(to, from); }
};

}  // namespace oasr::kernels
