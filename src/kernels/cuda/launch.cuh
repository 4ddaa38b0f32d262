// Putting kernels into the queue of a Gpu.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <tuple>
#include <type_traits>

#include "base/check.h"
#include "device/gpu.h"
#include "kernels/cuda/in_order.cuh"

namespace oasr::kernels::cuda {

struct Grid {
  std::int64_t x = 1, y = 1, z = 1;  // blocks; a launch of none is left out
};

// Zeros between the members of a kernel's argument. A value of an empty type is left alone: it has no bytes of its own, a
// tuple keeps it inside another element. So are large ones, which have no padding by their definition: g++ 12 clears
// bytes of members where a struct has a long array of structs with padding.
inline constexpr std::size_t kLargeArgument = 1024;
template <class T>
void clear_padding(T& value) {
  if constexpr (!std::is_empty_v<T> && sizeof(T) <= kLargeArgument) __builtin_clear_padding(&value);
}

// `name` is what an error says. shared_bytes: of dynamic shared memory.
template <class... Parameters, class... Arguments>
void launch(Gpu& gpu, const char* name, void (*kernel)(Parameters...), Grid grid, dim3 threads,
            std::size_t shared_bytes, Arguments&&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  CHECK(grid.x <= 0x7fff'ffff && grid.y <= 65'535 && grid.z <= 65'535, "a grid that a GPU takes");
  std::tuple<std::remove_cv_t<Parameters>...> values(static_cast<Parameters>(arguments)...);
  // Sections are compared by the bytes of their arguments: those between members are to be the same too.
  std::apply([](auto&... value) { (clear_padding(value), ...); }, values);
  static constexpr std::size_t kSizes[] = {sizeof(Parameters)...};
  std::apply(
      [&](auto&... value) {
        void* const pointers[] = {&value...};
        gpu.launch({.name = name,
                    .kernel = reinterpret_cast<const void*>(kernel),
                    .grid = {static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z)},
                    .block = {threads.x, threads.y, threads.z},
                    .shared_bytes = shared_bytes,
                    .arguments = pointers,
                    .sizes = kSizes});
      },
      values);
}

inline std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace oasr::kernels::cuda
