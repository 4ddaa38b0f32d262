// The convolutions on a GPU against their references: conv1d, conv2d, scaled_conv.
#include <limits>

#include "kernels/conv1d/op.h"
#include "kernels/conv2d/op.h"
#include "kernels/cuda/testing.h"
#include "kernels/scaled_conv/op.h"
#include "kernels/scaled_mm/testing.h"

namespace oasr::kernels {
namespace {

struct Geometry {
  std::int64_t batch, height, width, channels, c_out;
  ConvAxis vertical, horizontal;
  std::int64_t gap = 0;  // elements between pixels

  ConvGeometry of() const {
    const std::int64_t pixel = channels + gap;
    return {.batch = batch,
            .height = height,
            .width = width,
            .channels = channels,
            .stride_batch = height * width * pixel,
            .stride_row = width * pixel,
            .stride_pixel = pixel,
            .vertical = vertical,
            .horizontal = horizontal};
  }
  std::int64_t elements() const { return batch * height * width * (channels + gap); }
};

const Geometry kGeometries[] = {
    // One dimension: Whisper's two, one frame, a kernel as long as the padded input, dilation.
    {1, 1, 100, 80, 48, {}, {.taps = 3, .stride = 1, .before = 1, .after = 1}},
    {2, 1, 101, 48, 33, {}, {.taps = 3, .stride = 2, .before = 1, .after = 1}},
    {1, 1, 1, 16, 8, {}, {.taps = 3, .stride = 2, .before = 1, .after = 1}},
    {1, 1, 3, 5, 7, {}, {.taps = 5, .stride = 1, .before = 1, .after = 1}},
    {3, 1, 40, 16, 8, {}, {.taps = 3, .stride = 1, .dilation = 4, .before = 8, .after = 0}},
    // The subsamplings of a Conformer.
    {1, 41, 80, 1, 256, {.taps = 3, .stride = 2}, {.taps = 3, .stride = 2}},
    {1, 15, 39, 32, 40, {.taps = 3, .stride = 2}, {.taps = 3, .stride = 2}},
    {1, 11, 19, 16, 24, {.taps = 5, .stride = 3}, {.taps = 5, .stride = 3}},
    {2, 99, 39, 64, 64, {.taps = 3, .stride = 2}, {.taps = 3, .stride = 2}},
    // Uneven strides and padding, gaps between pixels, dilation, one tap.
    {2,
     9,
     12,
     7,
     20,
     {.taps = 3, .stride = 1, .before = 1, .after = 1},
     {.taps = 5, .stride = 2, .before = 2, .after = 1},
     3},
    {1,
     8,
     8,
     3,
     16,
     {.taps = 2, .stride = 2, .dilation = 2},
     {.taps = 3, .stride = 1, .dilation = 3, .before = 3, .after = 3}},
    {2, 5, 6, 4, 9, {}, {}},
};

class ConvOnGpu : public OnGpu {};

TEST_F(ConvOnGpu, Conv2dEqualsTheReference) {
  for (const Geometry& g : kGeometries) {
    const ConvGeometry of = g.of();
    const auto x = random_floats(g.elements(), 1), bias = random_floats(g.c_out, 2);
    const auto w = random_floats(g.c_out * of.k(), 3, 0.2f);
    auto weight = pack_rows(w, g.c_out, of.k(), DType::f16);
    std::vector<float> expected(size(of.rows() * (g.c_out + 1)), 77.0f);
    Conv2dArgs args{.x = x.data(),
                    .geometry = of,
                    .weight = &weight,
                    .bias = bias.data(),
                    .activation = Activation::relu,
                    .y = expected.data(),
                    .ldy = g.c_out + 1};
    auto y = upload(expected);
    conv2d_reference(args);
    weight.place(*gpu_);
    auto gpu_x = upload(x), gpu_bias = upload(bias);
    args.x = gpu_x.data();
    args.bias = gpu_bias.data();
    args.y = y.data();
    conv2d_reserve(context_, of.k());
    conv2d(context_, args);
    EXPECT_EQ(first_difference(y.values(), expected), -1) << "geometry " << &g - kGeometries;
  }
}

TEST_F(ConvOnGpu, Conv1dEqualsTheProcessorAndClearsItsPadding) {
  ExecContext host{.pool = &pool_, .isa = detected_isa(), .observer = nullptr, .gpu = nullptr};
  for (const std::int64_t stride : {1, 2}) {
    for (const std::int64_t frames : {1, 2, 3, 17, 301}) {
      for (const std::int64_t c_in : {1, 8, 80}) {
        const std::int64_t c_out = 37, out = conv1d_frames(frames, stride);
        auto x = random_floats((frames + 2) * c_in, 1);
        const auto w = random_floats(c_out * c_in * 3, 2), bias = random_floats(c_out, 3);
        const auto residual = random_floats(out * c_out, 4);
        auto weight = pack_rows(w, c_out, c_in * 3, DType::f32);
        std::vector<float> expected(size(out * c_out));
        auto gpu_x = upload(x), gpu_bias = upload(bias), gpu_residual = upload(residual),
             y = room<float>(out * c_out);
        Conv1dArgs args{.x = x.data(),
                        .frames = frames,
                        .stride = stride,
                        .weight = &weight,
                        .bias = bias.data(),
                        .activation = Activation::gelu,
                        .residual = residual.data(),
                        .ldr = c_out,
                        .y = expected.data(),
                        .ldy = c_out};
        conv1d(host, args);
        weight.place(*gpu_);
        args.x = gpu_x.data();
        args.bias = gpu_bias.data();
        args.residual = gpu_residual.data();
        args.y = y.data();
        conv1d(context_, args);
        EXPECT_EQ(first_difference(y.values(), expected), -1)
            << frames << " frames of " << c_in << ", stride " << stride;
        EXPECT_EQ(first_difference(gpu_x.values(), x), -1)
            << frames << " frames of " << c_in << ", stride " << stride;
      }
    }
  }
}

// In mixed precision convolutions are products of their fields, too, row by row, and report the lowest one.
TEST_F(ConvOnGpu, AreProductsOfFieldsInMixedPrecision) {
  for (const Arithmetic arithmetic : {Arithmetic::float16, Arithmetic::bfloat16}) {
    context_.arithmetic = arithmetic;
    for (const Geometry& g : kGeometries) {
      const ConvGeometry of = g.of();
      const std::int64_t rows = of.rows(), k = of.k();
      auto x = random_floats(g.elements(), 1);
      const bool odd = g.channels + g.gap > 5;
      if (odd) x[size(g.elements() - 1 - g.gap)] = -kInf;
      std::vector<float> fields(size(rows * k));
      std::int64_t reported = -1;
      for (std::int64_t row = rows - 1; row >= 0; --row) {
        gather_field(of, x.data(), row, fields.data() + row * k);
        for (std::int64_t i = 0; i < k; ++i) {
          if (!std::isfinite(fields[size(row * k + i)])) reported = row;
        }
      }
      auto weight = pack_rows(random_floats(g.c_out * k, 3, 0.2f), g.c_out, k, DType::f16);
      weight.place(*gpu_);
      auto x_there = upload(x), fields_there = upload(fields);
      auto y = room<float>(rows * g.c_out), expected = room<float>(rows * g.c_out);
      conv2d(context_, {.x = x_there.data(), .geometry = of, .weight = &weight, .activation = Activation::relu,
                        .y = y.data(), .ldy = g.c_out});
      EXPECT_EQ(reported_row(), reported) << "geometry " << &g - kGeometries;
      linear(context_, {.x = fields_there.data(), .ldx = k, .m = rows, .weight = &weight, .activation = Activation::relu,
                        .y = expected.data(), .ldy = g.c_out});
      EXPECT_EQ(reported_row(), reported) << "geometry " << &g - kGeometries;
      EXPECT_EQ(first_difference(y.values(), expected.values()), -1) << "geometry " << &g - kGeometries;
    }
  }
}

// A weight, its bias and an output with a residual, on the host and on the GPU.
class ScaledConvOnGpu : public OnGpu {
 protected:
  template <class Args, class Reference, class Op>
  void expect_equal(const Geometry& g, Args args, Reference reference, Op op, const decltype(args.x) gpu_x) {
    const ConvGeometry of = g.of();
    const auto w = random_int8(g.c_out * of.k(), 2);
    const auto scale = random_scales(g.c_out, 3), bias = random_floats(g.c_out, 4);
    const auto residual = random_floats(of.rows() * g.c_out, 5);
    auto weight = PackedInt8Weight::pack(g.c_out, of.k(), w, scale);
    std::vector<float> expected(size(of.rows() * g.c_out));
    args.geometry = of;
    args.weight = &weight;
    args.bias = bias.data();
    args.activation = Activation::swish;
    const std::vector<float> x_scale{0.03f};
    args.x_scale = x_scale.data();
    FloatOutput out{.residual = residual.data(), .ldr = g.c_out, .y = expected.data(), .ldy = g.c_out};
    const NotFinite found = reference(args, out);
    weight.place(*gpu_);
    auto gpu_scale = upload(x_scale), gpu_bias = upload(bias), gpu_residual = upload(residual);
    auto y = room<float>(of.rows() * g.c_out);
    args.x = gpu_x;
    args.x_scale = gpu_scale.data();
    args.bias = gpu_bias.data();
    out.residual = gpu_residual.data();
    out.y = y.data();
    op(args, out);
    EXPECT_EQ(reported_row(), found.row) << "geometry " << &g - kGeometries;
    EXPECT_EQ(first_difference(y.values(), expected), -1) << "geometry " << &g - kGeometries;
  }
};

TEST_F(ScaledConvOnGpu, EqualsTheReference) {
  for (const Geometry& g : kGeometries) {
    const auto x = random_int8(g.elements(), 1);
    auto gpu_x = upload(x);
    expect_equal(
        g, ScaledConvArgs{.x = x.data(), .geometry = g.of()},
        [](const ScaledConvArgs& args, const FloatOutput& out) {
          scaled_conv_reference(args, out);
          return NotFinite{};
        },
        [&](const ScaledConvArgs& args, const FloatOutput& out) { scaled_conv(context_, args, out); },
        gpu_x.data());
  }
}

TEST_F(ScaledConvOnGpu, EqualsTheReferenceOnFloatsAndReportsTheLowestRow) {
  for (const Geometry& g : kGeometries) {
    auto x = random_floats(g.elements(), 1, 2.0f);
    if (g.width > 2) {
      x[size(g.elements() - 1 - g.gap)] = std::nanf("");
      x[size(g.elements() / 2)] = kInf;
    }
    const auto one_tap = static_multiplier(random_floats(g.channels, 6), 0.03f, g.channels);
    std::vector<float> multiplier;
    for (std::int64_t tap = 0; tap < g.vertical.taps * g.horizontal.taps; ++tap) {
      multiplier.insert(multiplier.end(), one_tap.begin(), one_tap.end());
    }
    auto gpu_x = upload(x), gpu_multiplier = upload(multiplier);
    expect_equal(
        g, StaticScaledConvArgs{.x = x.data(), .geometry = g.of(), .multiplier = multiplier.data()},
        scaled_conv_static_reference,
        [&](StaticScaledConvArgs args, const FloatOutput& out) {
          args.multiplier = gpu_multiplier.data();
          EXPECT_FALSE(scaled_conv_static(context_, args, out));
        },
        gpu_x.data());
  }
}

TEST_F(ScaledConvOnGpu, EqualsTheReferenceWithEveryBackendThatTakesIt) {
  for (const ScaledMMBackend backend : {ScaledMMBackend::mma_sync, ScaledMMBackend::cublaslt}) {
    const ScaledMMImplementation& row = scaled_mm_implementation(backend);
    const Status prepared = prepare(row, *gpu_);
    if (!prepared) GTEST_SKIP() << prepared.error().message();
    int taken = 0;
    for (const Geometry& g : kGeometries) {
      if (!check_product(row, g.c_out, g.of().k())) continue;
      ++taken;
      const auto x = random_floats(g.elements(), 1, 2.0f);
      std::vector<float> multiplier = random_floats(g.of().k(), 6, 20.0f);
      auto gpu_x = upload(x), gpu_multiplier = upload(multiplier);
      expect_equal(
          g, StaticScaledConvArgs{.x = x.data(), .geometry = g.of(), .multiplier = multiplier.data()},
          scaled_conv_static_reference,
          [&](StaticScaledConvArgs args, const FloatOutput& out) {
            args.multiplier = gpu_multiplier.data();
            EXPECT_FALSE(row.conv(context_, args, out));
          },
          gpu_x.data());
    }
    EXPECT_GE(taken, 6);
  }
}

}  // namespace
}  // namespace oasr::kernels
