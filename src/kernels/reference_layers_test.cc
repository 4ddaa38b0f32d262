// With Isa::reference an op runs its definition: without threads, which every lane needs, and with the bits
// of the lanes.
#include <gtest/gtest.h>

#include "kernels/activate/op.h"
#include "kernels/attention/op.h"
#include "kernels/conv1d/op.h"
#include "kernels/conv2d/op.h"
#include "kernels/depthwise_conv1d/op.h"
#include "kernels/lane_choice.h"
#include "kernels/norm/op.h"
#include "kernels/quantize/norm.h"
#include "kernels/scaled_mm/testing.h"

namespace oasr::kernels {
namespace {

// What `run` writes with a lane and with the reference. It gets a context and the memory to write to.
template <class Run>
void expect_same(std::int64_t count, Run run, const char* op) {
  ThreadPool pool(3);
  ExecContext lanes{.pool = &pool, .isa = detected_isa()}, reference{.pool = nullptr, .isa = Isa::reference};
  std::vector<float> expected(size(count), 77.0f), got = expected;
  run(lanes, expected.data());
  run(reference, got.data());
  EXPECT_EQ(first_difference(got, expected), -1) << op;
  EXPECT_NE(expected, std::vector<float>(size(count), 77.0f)) << op << " writes";
}

constexpr std::int64_t kRows = 70, kIn = 48, kOut = 40;

TEST(ReferenceLayers, MultiplyAndConvolve) {
  const auto x = random_floats((kRows + 2) * kIn * 3, 1), w = random_floats(kOut * 9 * kIn, 2, 0.2f);
  const auto bias = random_floats(kOut, 3), residual = random_floats(kRows * kOut, 4);
  for (const DType storage : {DType::f32, DType::f16, DType::bf16}) {
    const PackedWeight weight = pack_rows(w, kOut, kIn, storage), taps = pack_rows(w, kOut, 3 * kIn, storage),
                       image = pack_rows(w, kOut, 9 * kIn, storage);
    expect_same(
        kRows * kOut,
        [&](ExecContext& context, float* y) {
          linear(context, {.x = x.data(),
                           .ldx = kIn,
                           .m = kRows,
                           .weight = &weight,
                           .bias = bias.data(),
                           .activation = Activation::gelu,
                           .residual = residual.data(),
                           .ldr = kOut,
                           .alpha = 0.5f,
                           .y = y,
                           .ldy = kOut});
        },
        "linear");
    expect_same(
        35 * kOut,
        [&](ExecContext& context, float* y) {
          auto padded = x;
          conv1d(context, {.x = padded.data(),
                           .frames = kRows,
                           .stride = 2,
                           .weight = &taps,
                           .bias = bias.data(),
                           .activation = Activation::relu,
                           .y = y,
                           .ldy = kOut});
        },
        "conv1d");
    const ConvGeometry geometry{.batch = 1,
                                .height = 7,
                                .width = 9,
                                .channels = kIn,
                                .stride_batch = 63 * kIn,
                                .stride_row = 9 * kIn,
                                .stride_pixel = kIn,
                                .vertical = {.taps = 3, .stride = 2},
                                .horizontal = {.taps = 3, .stride = 2}};
    expect_same(
        geometry.rows() * kOut,
        [&](ExecContext& context, float* y) {
          conv2d_reserve(context, image.k());
          conv2d(context, {.x = x.data(),
                           .geometry = geometry,
                           .weight = &image,
                           .bias = bias.data(),
                           .activation = Activation::relu,
                           .y = y,
                           .ldy = kOut});
        },
        "conv2d");
  }
}

TEST(ReferenceLayers, NormAndActivate) {
  const auto x = random_floats(kRows * 2 * kIn, 5), gamma = random_floats(kIn, 6),
             beta = random_floats(kIn, 7);
  expect_same(
      kRows * kIn,
      [&](ExecContext& context, float* y) {
        layer_norm(context, {.x = x.data(),
                             .ldx = kIn,
                             .m = kRows,
                             .d = kIn,
                             .gamma = gamma.data(),
                             .beta = beta.data(),
                             .y = y,
                             .ldy = kIn});
      },
      "layer_norm");
  expect_same(
      kRows * kIn,
      [&](ExecContext& context, float* y) {
        std::copy_n(x.data(), kRows * kIn, y);
        activate_rows(context, {.x = y, .ldx = kIn, .m = kRows, .d = kIn, .activation = Activation::swish});
      },
      "activate_rows");
  expect_same(
      kRows * kIn,
      [&](ExecContext& context, float* y) {
        glu(context, {.x = x.data(), .ldx = 2 * kIn, .m = kRows, .d = kIn, .y = y, .ldy = kIn});
      },
      "glu");
  const auto taps = random_floats(15 * kIn, 8);
  const auto weight = DepthwiseWeight::pack(kIn, 15, [&](std::int64_t c, std::span<float> row) {
    std::copy_n(taps.data() + c * 15, 15, row.data());
  });
  expect_same((kRows - 14) * kIn,
              [&](ExecContext& context, float* y) {
                depthwise_conv1d(context, {.x = x.data(),
                                           .ldx = kIn,
                                           .frames = kRows - 14,
                                           .weight = &weight,
                                           .bias = beta.data(),
                                           .y = y,
                                           .ldy = kIn});
              },
              "depthwise_conv1d");
}

TEST(ReferenceLayers, Attend) {
  constexpr int kHeads = 2, kDim = 24;
  constexpr std::int64_t kLength = 37, kWidth = kHeads * kDim;
  const auto q = random_floats(kLength * kWidth, 1), k = random_floats(kLength * kWidth, 2),
             v = random_floats(kLength * kWidth, 3);
  for (const DType storage : {DType::f32, DType::f16}) {
    for (const bool causal : {false, true}) {
      expect_same(
          kLength * kWidth,
          [&](ExecContext& context, float* y) {
            AlignedBuffer memory(kv_cache_bytes(kHeads, kDim, kLength, storage));
            KvCache cache{.heads = kHeads,
                          .head_dim = kDim,
                          .capacity = kLength,
                          .length = 0,
                          .storage = storage,
                          .data = memory.data()};
            attention_reserve(context, cache);
            kv_append(context, cache, k.data(), kWidth, v.data(), kWidth, kLength);
            const AttentionArgs args{.q = q.data(),
                                     .ldq = kWidth,
                                     .queries = kLength,
                                     .kv = &cache,
                                     .causal = causal,
                                     .scale = 0.2f,
                                     .out = y,
                                     .ldo = kWidth};
            attention(context, {&args, 1});
          },
          "attention");
    }
  }
}

TEST(ReferenceLayers, Quantize) {
  auto x = random_floats(kRows * kIn, 9);
  const auto smooth = random_scales(kIn, 10), gamma = random_floats(kIn, 11), beta = random_floats(kIn, 12);
  x[size(41 * kIn + 5)] = std::nanf("");
  ThreadPool pool(3);
  struct Result {
    std::vector<std::int8_t> q[3];
    std::vector<float> scale[2];
    std::int64_t row[3];
    bool operator==(const Result&) const = default;
  };
  const auto run = [&](ExecContext context) {
    Result r;
    for (auto& q : r.q) q.assign(size(kRows * kIn), 99);
    for (auto& scale : r.scale) scale.assign(size(kRows), 77.0f);
    layer_norm_quant_reserve(context, kIn);
    r.row[0] = quantize_per_token(context, {.x = x.data(),
                                            .ldx = kIn,
                                            .m = kRows,
                                            .k = kIn,
                                            .smooth_inv = smooth.data(),
                                            .q = r.q[0].data(),
                                            .ldq = kIn,
                                            .scale = r.scale[0].data()})
                   .row;
    r.row[1] = quantize_static(context, {.x = x.data(),
                                         .ldx = kIn,
                                         .m = kRows,
                                         .k = kIn,
                                         .multiplier = smooth.data(),
                                         .q = r.q[1].data(),
                                         .ldq = kIn})
                   .row;
    r.row[2] = layer_norm_quant(context, {.x = x.data(),
                                          .ldx = kIn,
                                          .m = kRows,
                                          .d = kIn,
                                          .gamma = gamma.data(),
                                          .beta = beta.data(),
                                          .q = r.q[2].data(),
                                          .ldq = kIn,
                                          .scale = r.scale[1].data()})
                   .row;
    for (auto& scale : r.scale) {
      EXPECT_TRUE(std::isnan(scale[41]));
      scale[41] = 0.0f;  // NaN is not equal to itself
    }
    return r;
  };
  const Result expected = run({.pool = &pool, .isa = detected_isa()});
  EXPECT_TRUE(run({.pool = nullptr, .isa = Isa::reference}) == expected);
  for (const std::int64_t row : expected.row) EXPECT_EQ(row, 41);
}

TEST(ReferenceLayers, AreNamedSoWhereALaneWouldBe) {
  EXPECT_EQ(lane_name(linear_lane(Isa::reference), Isa::reference), "reference");
  EXPECT_EQ(lane_name(linear_lane(Isa::scalar), Isa::scalar), "scalar");
  EXPECT_EQ(scaled_mm_backend_of(Isa::reference), ScaledMMBackend::reference);
  EXPECT_EQ(scaled_mm_backend_of(Isa::scalar), ScaledMMBackend::native);
}

}  // namespace
}  // namespace oasr::kernels
