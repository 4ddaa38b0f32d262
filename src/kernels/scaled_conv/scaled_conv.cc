#include <cstring>

#include "base/check.h"
#include "kernels/scaled_conv/cuda.h"
#include "kernels/scaled_conv/op.h"
#include "kernels/scaled_mm/blocks.h"

namespace oasr::kernels {
namespace {

// Multiplies the receptive fields that field(row, to) writes, K values each; it returns whether they were
// finite.
template <class Args, class Field>
NotFinite multiply_fields(ExecContext& context, const Args& args, const FloatOutput& out, bool costly, Field field) {
  CHECK(args.weight->k() == args.geometry.k(), "a weight of these taps and channels");
  const ScaledMMArgs product{.a_scale = ActivationScale::per_tensor(args.x_scale), .m = args.geometry.rows(),
                             .weight = args.weight, .bias = args.bias, .activation = args.activation};
  return multiply_blocks(
      context, product, out, costly,
      [&](std::int64_t m0, std::int64_t count, const BlockScratch& scratch, ScaledMMArgs& block) {
        NotFinite found;
        for (std::int64_t m = 0; m < count; ++m) {
          if (!field(m0 + m, scratch.a + m * scratch.lda)) found.merge({m});
        }
        block.a = scratch.a;
        block.lda = scratch.lda;
        return found;
      });
}

}  // namespace

void scaled_conv(ExecContext& context, const ScaledConvArgs& args, const FloatOutput& out) {
  if (context.gpu != nullptr) return scaled_conv_cuda(*context.gpu, args, out);
  const NotFinite found = multiply_fields(context, args, out, false, [&](std::int64_t row, std::int8_t* to) {
    gather_field(args.geometry, args.x, row, to);
    return true;
  });
  CHECK(!found, "int8 values are finite");
}

NotFinite scaled_conv_static(ExecContext& context, const StaticScaledConvArgs& args, const FloatOutput& out) {
  if (context.gpu != nullptr) {
    scaled_conv_cuda(*context.gpu, args, out);
    return {};
  }
  const auto quantize = quantize_lane(context.isa).fixed;
  return multiply_fields(context, args, out, true, [&](std::int64_t row, std::int8_t* to) {
    NotFinite found;
    for_field(args.geometry, row, [&](std::int64_t from, std::int64_t at, std::int64_t count) {
      if (from < 0) {
        std::memset(to + at, 0, static_cast<std::size_t>(count));
        return;
      }
      found.merge(quantize({.x = args.x + from, .ldx = count, .m = 1, .k = count,
                            .multiplier = args.multiplier + at, .q = to + at, .ldq = count},
                           0, 1));
    });
    return !found;
  });
}

}  // namespace oasr::kernels
