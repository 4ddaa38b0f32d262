// Whether rows can be read and written 16 bytes (or `bytes`) at a time.
#pragma once

#include <cstdint>

namespace oasr::kernels::cuda {

// Null is aligned.
template <class T>
bool aligned(const T* data, std::int64_t stride, std::int64_t bytes = 16) {
  return reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(bytes) == 0 &&
         stride * static_cast<std::int64_t>(sizeof(T)) % bytes == 0;
}

}  // namespace oasr::kernels::cuda
