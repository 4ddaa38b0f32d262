// activate_rows() and glu() for any instruction set: the template that the files cpu_*.cc instantiate.
#pragma once

#include <cstdint>

#include "kernels/activate/op.h"
#include "kernels/simd/activate.h"
#include "kernels/simd/several.h"

namespace oasr::kernels {

template <class S>
class ActivateLaneOf {
  using Group = Several<S, 4>;
  static constexpr std::int64_t kGroup = Group::kWidth;

 public:
  static void activate_rows(const ActivateRowsArgs& args, std::int64_t m0, std::int64_t m1) {
    const std::int64_t whole = args.d / kGroup * kGroup;
    alignas(64) float rest[kGroup] = {};
    for (std::int64_t m = m0; m < m1; ++m) {
      float* x = args.x + m * args.ldx;
      Activate<Group>::run(args.activation, x, whole);
      if (whole == args.d) continue;
      copy(x + whole, args.d - whole, rest);
      Activate<Group>::run(args.activation, rest, kGroup);
      copy(rest, args.d - whole, x + whole);
    }
  }

  static void glu(const GluArgs& args, std::int64_t m0, std::int64_t m1) {
    const std::int64_t whole = args.d / kGroup * kGroup;
    alignas(64) float value[kGroup] = {}, gate[kGroup] = {};
    for (std::int64_t m = m0; m < m1; ++m) {
      const float* x = args.x + m * args.ldx;
      float* y = args.y + m * args.ldy;
      for (std::int64_t i = 0; i < whole; i += kGroup) gated(x + i, x + args.d + i, y + i);
      if (whole == args.d) continue;
      copy(x + whole, args.d - whole, value);
      copy(x + args.d + whole, args.d - whole, gate);
      gated(value, gate, value);
      copy(value, args.d - whole, y + whole);
    }
  }

 private:
  static void gated(const float* value, const float* gate, float* y) {
    Group::store(y, Group::mul(Group::load(value), exact::sigmoid<Group>(Group::load(gate))));
  }

  static void copy(const float* from, std::int64_t count, float* to) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
  }
};

}  // namespace oasr::kernels
