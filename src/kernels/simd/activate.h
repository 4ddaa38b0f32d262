// act() over an array, the same bits as kernels::activate().
#pragma once

#include <cstdint>

#include "kernels/linear/activation.h"
#include "tensor/exact_poly.h"

namespace oasr::kernels {

// Group: vectors that are computed side by side (several.h).
template <class Group>
class Activate {
  using V = typename Group::V;

 public:
  // values: memory for `count` rounded up to whole groups.
  static void run(Activation activation, float* values, std::int64_t count) {
    switch (activation) {
      case Activation::none: return;
      case Activation::gelu: return each<Activation::gelu>(values, count);
      case Activation::swish: return each<Activation::swish>(values, count);
      case Activation::relu: return each<Activation::relu>(values, count);
      case Activation::tanh: return each<Activation::tanh>(values, count);
    }
  }

 private:
  template <Activation kActivation>
  static void each(float* values, std::int64_t count) {
    for (std::int64_t n = 0; n < count; n += Group::kWidth) {
      Group::store(values + n, value<kActivation>(Group::load(values + n)));
    }
  }

  template <Activation kActivation>
  [[gnu::always_inline]] static V value(V v) {
    if constexpr (kActivation == Activation::gelu) return exact::gelu<Group>(v);
    if constexpr (kActivation == Activation::swish) return exact::swish<Group>(v);
    if constexpr (kActivation == Activation::tanh) return exact::tanh<Group>(v);
    if constexpr (kActivation == Activation::relu) return Group::max(Group::set(0.0f), v);
  }
};

}  // namespace oasr::kernels
