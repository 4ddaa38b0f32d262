// No kernel allocates in the steady state: every operator new of the process is counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "kernels/activate/op.h"
#include "kernels/attention/op.h"
#include "kernels/conv1d/op.h"
#include "kernels/conv2d/op.h"
#include "kernels/depthwise_conv1d/op.h"
#include "kernels/lane_report.h"
#include "kernels/norm/op.h"
#include "kernels/quantize/norm.h"
#include "kernels/scaled_conv/op.h"
#include "kernels/scaled_mm_int4/op.h"
#include "kernels/testing.h"

namespace {
std::atomic<std::int64_t> allocations{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  allocations.fetch_add(1);
  void* p = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t a) { return counted(bytes, static_cast<std::size_t>(a)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace oasr::kernels {
namespace {

[[maybe_unused]] const auto* const kLinearLanes = report_lanes("linear", linear_lanes);
[[maybe_unused]] const auto* const kScaledMmLanes = report_lanes("scaled_mm", scaled_mm_lanes);
[[maybe_unused]] const auto* const kInt4MmLanes = report_lanes("scaled_mm_int4", int4_mm_lanes);

TEST(Kernels, DoNotAllocateInTheSteadyState) {
  constexpr std::int64_t kWidth = 128, kFrames = 150;
  ThreadPool pool(3);
  auto x = random_floats((kFrames + 2) * kWidth, 1), rows = random_floats(kWidth * 3 * kWidth, 2);
  const auto gamma = random_floats(kWidth, 3);
  std::vector<float> y(static_cast<std::size_t>(kFrames * kWidth));
  const PackedWeight weight = pack_rows(rows, kWidth, kWidth, DType::f16);
  const PackedWeight conv = pack_rows(rows, kWidth, 3 * kWidth, DType::bf16);
  const auto depthwise = DepthwiseWeight::pack(kWidth, 3, [](std::int64_t c, std::span<float> row) {
    std::ranges::fill(row, static_cast<float>(c));
  });
  AlignedBuffer memory(kv_cache_bytes(2, 64, kFrames, DType::f16));
  KvCache kv{.heads = 2, .head_dim = 64, .capacity = kFrames, .storage = DType::f16, .data = memory.data()};

  for (const LinearLane& lane : runnable(linear_lanes())) {
    ExecContext context{&pool, lane.isa};
    const auto step = [&] {
      for (const std::int64_t m : {std::int64_t{1}, std::int64_t{5}, kFrames}) {
        linear(context, {.x = x.data(), .ldx = kWidth, .m = m, .weight = &weight,
                         .activation = Activation::gelu, .y = y.data(), .ldy = kWidth});
        layer_norm(context, {.x = x.data(), .ldx = kWidth, .m = m, .d = kWidth, .gamma = gamma.data(),
                             .beta = gamma.data(), .y = y.data(), .ldy = kWidth});
        kv.length = 0;
        kv_append(context, kv, x.data(), kWidth, x.data(), kWidth, m);
        const AttentionArgs args{.q = x.data(), .ldq = kWidth, .queries = m, .kv = &kv, .causal = true,
                                 .out = y.data(), .ldo = kWidth};
        attention(context, {&args, 1});
      }
      depthwise_conv1d(context, {.x = x.data(), .ldx = kWidth, .frames = kFrames, .weight = &depthwise, .y = y.data(),
                                 .ldy = kWidth});
      glu(context, {.x = x.data(), .ldx = kWidth, .m = kFrames, .d = kWidth / 2, .y = y.data(), .ldy = kWidth});
      activate_rows(context, {.x = y.data(), .ldx = kWidth, .m = kFrames, .d = kWidth, .activation = Activation::swish});
      conv2d(context, {.x = x.data(), .geometry = {.width = kFrames, .channels = kWidth, .stride_pixel = kWidth, .vertical = {},
                                                   .horizontal = {.taps = 3, .stride = 2}},
                       .weight = &conv, .y = y.data(), .ldy = kWidth});
      conv1d(context, {.x = x.data(), .frames = kFrames, .stride = 2, .weight = &conv, .y = y.data(),
                       .ldy = kWidth});
    };
    step();  // sizes the scratch memory of every thread
    const std::int64_t before = allocations.load();
    for (int i = 0; i < (lane.isa == Isa::scalar ? 3 : 100); ++i) step();
    EXPECT_EQ(allocations.load() - before, 0) << lane.name;
  }
}

TEST(Int8Kernels, DoNotAllocateOnceReserved) {
  constexpr std::int64_t kWidth = 128, kFrames = 150;
  const auto x = random_floats(kFrames * kWidth, 1), scales = random_floats(kFrames + 3 * kWidth, 2);
  const std::vector<std::int8_t> rows(static_cast<std::size_t>(kWidth * 3 * kWidth), 3);
  std::vector<std::int8_t> q(static_cast<std::size_t>(kFrames * kWidth), 1), q_out = q;
  std::vector<float> y(q.size()), scale(static_cast<std::size_t>(kFrames));
  const auto first = [](const auto& values, std::int64_t n) { return std::span(values).first(static_cast<std::size_t>(n)); };
  const auto weight = PackedInt8Weight::pack(kWidth, kWidth, first(rows, kWidth * kWidth), first(scales, kWidth));
  const auto multiplier = random_floats(3 * kWidth, 3);
  const auto conv = PackedInt8Weight::pack(kWidth, 3 * kWidth, rows, first(scales, kWidth));
  for (const ScaledMMLane& lane : runnable(scaled_mm_lanes())) {
    ThreadPool pool(3);
    ExecContext context{&pool, lane.isa};
    layer_norm_quant_reserve(context, kWidth);
    scaled_mm_reserve(context, 3 * kWidth);
    const std::int64_t before = allocations.load();
    for (int i = 0; i < (lane.isa == Isa::scalar ? 3 : 100); ++i) {
      for (const std::int64_t m : {std::int64_t{1}, std::int64_t{5}, kFrames}) {
        const ScaledMMArgs args{.a = q.data(), .lda = kWidth, .a_scale = ActivationScale::per_token(scale.data()),
                                .m = m, .weight = &weight, .activation = Activation::gelu};
        const FloatOutput out{.y = y.data(), .ldy = kWidth};
        const Int8Output quantized{.multiplier = scales.data(), .q = q_out.data(), .ldq = kWidth};
        EXPECT_FALSE(layer_norm_quant(context, {.x = x.data(), .ldx = kWidth, .m = m, .d = kWidth, .gamma = x.data(),
                                                .beta = x.data(), .q = q.data(), .ldq = kWidth, .scale = scale.data()}));
        EXPECT_FALSE(quantize_per_token(context, {.x = x.data(), .ldx = kWidth, .m = m, .k = kWidth, .q = q.data(),
                                                  .ldq = kWidth, .scale = scale.data()}));
        EXPECT_FALSE(quantize_static(context, {.x = x.data(), .ldx = kWidth, .m = m, .k = kWidth,
                                               .multiplier = x.data(), .q = q.data(), .ldq = kWidth}));
        scaled_mm(context, args, out);
        EXPECT_FALSE(scaled_mm_quant(context, args, quantized));
        const DynamicScaledMMArgs dynamic{.x = x.data(), .ldx = kWidth, .m = m, .weight = &weight};
        EXPECT_FALSE(scaled_mm_dynamic(context, dynamic, out));
        EXPECT_FALSE(scaled_mm_dynamic(context, dynamic, quantized));
        const StaticScaledMMArgs fixed{.x = x.data(), .ldx = kWidth, .m = m, .multiplier = x.data(),
                                       .input_scale = scales.data(), .weight = &weight};
        EXPECT_FALSE(scaled_mm_static(context, fixed, out));
        EXPECT_FALSE(scaled_mm_static(context, fixed, quantized));
      }
      const ConvGeometry geometry{.width = kFrames, .channels = kWidth, .stride_pixel = kWidth, .vertical = {},
                                  .horizontal = {.taps = 3, .before = 1, .after = 1}};
      scaled_conv(context, {.x = q.data(), .geometry = geometry, .x_scale = scales.data(), .weight = &conv},
                  {.y = y.data(), .ldy = kWidth});
      EXPECT_FALSE(scaled_conv_static(context, {.x = x.data(), .geometry = geometry, .multiplier = multiplier.data(),
                                                .x_scale = scales.data(), .weight = &conv},
                                      {.y = y.data(), .ldy = kWidth}));
    }
    EXPECT_EQ(allocations.load() - before, 0) << lane.name;
  }
}

TEST(Kernels, AllocateNothingForInt4AfterReserve) {
  constexpr std::int64_t kWidth = 128, kFrames = 150;
  const std::vector<std::uint8_t> codes(static_cast<std::size_t>(kWidth * kWidth), 9);
  const std::vector<std::uint8_t> group_scale(codes.size() / PackedInt4Weight::kGroup, 3);
  const std::vector<std::int16_t> group_zero(group_scale.size(), 20);
  const auto x = random_floats(kFrames * kWidth, 1), scales = random_floats(kWidth, 2);
  const auto weight = PackedInt4Weight::pack_groups(kWidth, kWidth, codes, scales, group_scale, group_zero);
  std::vector<std::int8_t> q(static_cast<std::size_t>(kFrames * kWidth), 1), q_out = q;
  std::vector<float> y(q.size());
  for (const Int4MMLane& lane : runnable(int4_mm_lanes())) {
    ThreadPool pool(3);
    ExecContext context{&pool, lane.isa};
    int4_mm_reserve(context, kWidth);
    const std::int64_t before = allocations.load();
    for (int i = 0; i < (lane.isa == Isa::scalar ? 3 : 100); ++i) {
      for (const std::int64_t m : {std::int64_t{1}, std::int64_t{5}, kFrames}) {
        const FloatOutput out{.y = y.data(), .ldy = kWidth};
        const Int8Output quantized{.multiplier = scales.data(), .q = q_out.data(), .ldq = kWidth};
        const Int4MMArgs args{.a = q.data(), .lda = kWidth, .a_scale = ActivationScale::per_tensor(scales.data()),
                              .m = m, .weight = &weight, .activation = Activation::gelu};
        scaled_mm(context, args, out);
        EXPECT_FALSE(scaled_mm_quant(context, args, quantized));
        const DynamicInt4MMArgs dynamic{.x = x.data(), .ldx = kWidth, .m = m, .weight = &weight};
        EXPECT_FALSE(scaled_mm_dynamic(context, dynamic, out));
        EXPECT_FALSE(scaled_mm_dynamic(context, dynamic, quantized));
        const StaticInt4MMArgs fixed{.x = x.data(), .ldx = kWidth, .m = m, .multiplier = x.data(),
                                     .input_scale = scales.data(), .weight = &weight};
        EXPECT_FALSE(scaled_mm_static(context, fixed, out));
        EXPECT_FALSE(scaled_mm_static(context, fixed, quantized));
      }
    }
    EXPECT_EQ(allocations.load() - before, 0) << lane.name;
  }
}

TEST(Kernels, TheCounterSeesAllocations) {
  const std::int64_t before = allocations.load();
  const std::vector<float> values(10);
  EXPECT_EQ(values.size(), 10u);
  EXPECT_GE(allocations.load() - before, 1);
}

}  // namespace
}  // namespace oasr::kernels
