// Layers with 4-bit weights: what they say of themselves, and which stored numbers are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "formats/w4_packed.h"
#include "quant/methods/testing.h"

namespace oasr::quant {
namespace {

using formats::W4Form;
using formats::ZeroDomain;
using ::testing::HasSubstr;

constexpr std::int64_t kN = 64, kK = 256;

const MethodOptions kNative = {.scaled_mm =
                                   &kernels::scaled_mm_implementation(kernels::ScaledMMBackend::native)};

Result<LinearMethodPtr> try_make(const QuantizedLayer& layer, const OwnedSlots& made) {
  return quant_method(layer.scheme).from_slots(layer, made.slots, {}, kernels::Activation::none, kNative);
}

TEST(W4A8, SaysHowItIsStoredAndMultiplied) {
  for (const auto& [scheme, storage, bytes] :
       {std::tuple("w4a8_g128", "int4 g128", kN * kK / 2 + 2 * kN * 2 + 2 * kN),
        {"w4a8_chn", "int4 chn", kN * kK / 2 + 4 * kN}}) {
    const QuantizedLayer layer = quantized_layer(scheme);
    const OwnedSlots made = made_slots(layer, {kN, kK}, 1);
    const MethodInfo info = try_make(layer, made).value()->info(Isa::scalar);
    EXPECT_EQ(info.scheme, scheme);
    EXPECT_EQ(info.storage, storage);
    EXPECT_EQ(info.zero_domain, enum_name(formats::zero_domain_names(), *layer.zero_domain));
    EXPECT_EQ(info.kernel, "scaled_mm_int4 scalar");
    EXPECT_EQ(info.operands, "int8 x uint4");
    EXPECT_EQ(info.bytes, bytes);
    std::size_t stored = 0;
    for (const auto& [suffix, memory] : made.memory) stored += memory.size();
    EXPECT_EQ(static_cast<std::size_t>(bytes), stored);
  }
}

// Channel 11, group 1 of random weights, damaged one number at a time.
struct Corruption {
  const char* what;
  const char* scheme;
  ZeroDomain domain;
  void (*damage)(OwnedSlots& made);
  const char* message;
};

constexpr std::int64_t kChannel = 11, kGroup = 1;

void set_group(OwnedSlots& made, const char* suffix, int value) {
  const auto at =
      static_cast<std::size_t>(kGroup * kN + formats::scale_place(formats::ScaleOrder::quads, kChannel));
  made.memory.at(suffix)[at] = static_cast<std::byte>(value);
}

void set_codes(OwnedSlots& made, int code) {
  for (std::int64_t k = kGroup * formats::kGroup; k < (kGroup + 1) * formats::kGroup; ++k) {
    const auto place = formats::nibble_place(kK, kChannel, k);
    auto& byte = made.memory.at("qweight")[static_cast<std::size_t>(place.byte)];
    byte = (byte & static_cast<std::byte>(0xF0 >> place.shift)) | static_cast<std::byte>(code << place.shift);
  }
}

// Group 1 becomes codes, scale and zero that make one value.
void set_value(OwnedSlots& made, int code, int scale, int zero_byte) {
  set_codes(made, code);
  set_group(made, "s2_scales", scale);
  set_group(made, "s2_zeros", zero_byte);
}

void set_half(OwnedSlots& made, const char* suffix, std::uint16_t bits) {
  std::memcpy(made.memory.at(suffix).data() + 2 * kChannel, &bits, 2);
}

TEST(W4A8, RefusesEveryNumberThatNoKernelMultiplies) {
  const char *groups = "w4a8_g128", *channels = "w4a8_chn";
  const ZeroDomain pre = ZeroDomain::pre_scaled, post = ZeroDomain::post_scaled;
  const Corruption rows[] = {
      {"a scale of 0", groups, post, [](OwnedSlots& m) { set_group(m, "s2_scales", 0); },
       "channel 11, group 1: rule group_scale: 0 is outside 1..127"},
      {"a scale of 128", groups, post, [](OwnedSlots& m) { set_group(m, "s2_scales", 128); },
       "channel 11, group 1: rule group_scale: 128 is outside 1..127"},
      {"a product that carries", groups, pre, [](OwnedSlots& m) { set_value(m, 15, 18, -9 * 18); },
       "channel 11, group 1: rule product: 15 · 18 is above 255"},
      {"a zero that is no code times the scale", groups, pre, [](OwnedSlots& m) { set_value(m, 4, 5, -9); },
       "channel 11, group 1: rule zero: 9 at scale 5 is no zero of the domain pre_scaled"},
      {"a zero that is no int8", groups, post, [](OwnedSlots& m) { set_value(m, 15, 16, -140); },
       "channel 11, group 1: rule zero: 140 at scale 16 is no zero of the domain post_scaled"},
      {"codes that make 128", groups, post,
       [](OwnedSlots& m) {
         set_value(m, 0, 16, -112);
         const auto place = formats::nibble_place(kK, kChannel, kGroup * formats::kGroup + 5);
         m.memory.at("qweight")[static_cast<std::size_t>(place.byte)] |=
             static_cast<std::byte>(15 << place.shift);
       },
       "channel 11, group 1: rule value: 15 · 16 - 112 = 128 is no int8"},
      {"a scale that is NaN", groups, post, [](OwnedSlots& m) { set_half(m, "s1_scales", 0x7E00); },
       "channel 11: rule channel_scale: nan is no positive float16"},
      {"a scale that is infinite", groups, pre, [](OwnedSlots& m) { set_half(m, "s1_scales", 0x7C00); },
       "channel 11: rule channel_scale: inf is no positive float16"},
      {"a scale of nothing", channels, pre, [](OwnedSlots& m) { set_half(m, "s1_scales", 0); },
       "channel 11: rule channel_scale: 0 is no positive float16"},
      {"a negative scale", channels, pre, [](OwnedSlots& m) { set_half(m, "s1_scales", 0xBC00); },
       "channel 11: rule channel_scale: -1 is no positive float16"},
      {"a channel's zero that is no code", channels, pre,
       [](OwnedSlots& m) { set_half(m, "s1_szeros", 0x3C00); },
       "channel 11: rule channel_zero: 0.9999542 at scale "},
      {"a channel's zero that is NaN", channels, pre, [](OwnedSlots& m) { set_half(m, "s1_szeros", 0x7E00); },
       "channel 11: rule channel_zero: nan at scale "},
      {"a smoother of 0", groups, post, [](OwnedSlots& m) { m.set("smooth_inv", 3, 0.0f); }, "smooth_inv"},
  };
  for (const Corruption& row : rows) {
    SCOPED_TRACE(row.what);
    QuantizedLayer layer = quantized_layer(row.scheme, true);
    layer.zero_domain = row.domain;
    OwnedSlots made = made_slots(layer, {kN, kK}, 1);
    ASSERT_TRUE(try_make(layer, made));
    row.damage(made);
    const auto method = try_make(layer, made);
    ASSERT_FALSE(method);
    EXPECT_EQ(method.error().code, ErrorCode::bad_checkpoint);
    EXPECT_THAT(method.error().what, HasSubstr(row.message));
  }
}

TEST(W4A8, RefusesTensorsOfAnotherShape) {
  const QuantizedLayer layer = quantized_layer("w4a8_g128");
  OwnedSlots made = made_slots(layer, {kN, kK}, 1);
  made.add("s2_zeros", StorageFormat::i8, {1, kN}, bytes_of(std::vector<std::int8_t>(kN)));
  const auto short_zeros = try_make(layer, made);
  ASSERT_FALSE(short_zeros);
  EXPECT_THAT(short_zeros.error().what,
              HasSubstr("the tensors have other sizes than a weight [64, 256] per_group"));
}

std::vector<QuantizedLayer> every_w4_storage() {
  auto layers = every_storage();
  std::erase_if(layers, [](const QuantizedLayer& layer) { return !w4_form(layer.scheme); });
  return layers;
}

// y [M, N] of x [M, K], with a bias; the row that was not finite.
std::pair<std::vector<float>, std::int64_t> forward(const QuantizedLayer& layer, const OwnedSlots& made,
                                                    const std::vector<float>& x, const std::vector<float>& bias,
                                                    int threads = 2) {
  const auto method =
      quant_method(layer.scheme).from_slots(layer, made.slots, bias, kernels::Activation::none, kNative).value();
  ThreadPool pool(threads);
  ExecContext context{.pool = &pool, .isa = detected_isa()};
  method->reserve(context);
  const std::int64_t m = std::ssize(x) / kK;
  std::vector<float> y(static_cast<std::size_t>(m * kN), 99.0f);
  const auto found = method->forward(context, ConstMatrix{x.data(), m, kK, kK}, {}, Matrix{y.data(), m, kN, kN});
  return {std::move(y), found.row};
}

// A value is the sum over k of scale · a · w in numbers; in floats it is rounded five times at most (the decoded
// weight here, float(sum), two scales, the zero of a foreign channel), each time something of a size up to
// Σ scale · |a| · (s · u + |zero|). The input's own rounding moves a by half a code at most, and what its floats
// round is below 127 · 2⁻²².
TEST(W4A8, AnswersLikeTheFloatsThatItsCodesStandForAndAlwaysWithTheSameBits) {
  constexpr std::int64_t kM = 7;
  const auto x = kernels::random_floats(kM * kK, 11, 3.0f);
  for (const QuantizedLayer& layer : every_w4_storage()) {
    SCOPED_TRACE(layer.scheme + (layer.smoothed ? " smoothed" : ""));
    const OwnedSlots made = made_slots(layer, {kN, kK}, 5);
    const auto weight = read_w4(*w4_form(layer.scheme), *layer.zero_domain, made.slots).value();
    const auto w = formats::decoded(weight);
    const auto smooth = layer.smoothed ? floats_in(made.slots.at("smooth_inv")) : std::vector<float>(kK, 1.0f);
    std::vector<std::int8_t> a(static_cast<std::size_t>(kM * kK));
    std::vector<float> scale(kM);
    ASSERT_FALSE(kernels::quantize_per_token_reference({.x = x.data(), .ldx = kK, .m = kM, .k = kK,
                                                        .smooth_inv = smooth.data(), .q = a.data(), .ldq = kK,
                                                        .scale = scale.data()}));
    const auto y = forward(layer, made, x, {}).first;
    double off = 0, off_x = 0, all = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t m = i / kN, n = i % kN;
      double exact = 0, of_x = 0, size = 0, weights = 0;
      for (std::size_t k = 0; k < kK; ++k) {
        const double input = double(scale[m]) * a[m * kK + k], value = w[n * kK + k];
        const double zero = weight.channel_zero.empty() ? 0 : std::fabs(weight.channel_zero[n]);
        exact += input * value;
        of_x += double(x[m * kK + k] * smooth[k]) * value;
        size += std::fabs(input) * (std::fabs(value) + 2 * zero);
        weights += std::fabs(value);
      }
      EXPECT_LE(std::fabs(y[i] - exact), 5 * 0x1p-24 * size);
      EXPECT_LE(std::fabs(y[i] - of_x), (0.5 + 127 * 0x1p-22) * scale[m] * weights + 5 * 0x1p-24 * size);
      off += (y[i] - exact) * (y[i] - exact);
      off_x += (y[i] - of_x) * (y[i] - of_x);
      all += exact * exact;
    }
    EXPECT_LT(std::sqrt(off / all), 2e-3);
    EXPECT_LT(std::sqrt(off_x / all), 2e-2);  // a rounds the input to 254 levels
    for (const int threads : {1, 2, 3, 3}) {
      EXPECT_EQ(kernels::first_difference(forward(layer, made, x, {}, threads).first, y), -1) << threads;
    }
  }
}

TEST(W4A8, ARowOfZerosIsTheBiasAndOneThatIsNotFiniteIsReported) {
  const std::vector<float> zeros(kK);
  std::vector<std::int8_t> codes(kK, 1);
  float scale = 0;
  ThreadPool pool(1);
  ExecContext context{.pool = &pool, .isa = detected_isa()};
  EXPECT_FALSE(kernels::quantize_per_token(
      context, {.x = zeros.data(), .ldx = kK, .m = 1, .k = kK, .q = codes.data(), .ldq = kK, .scale = &scale}));
  EXPECT_THAT(codes, ::testing::Each(0));
  EXPECT_EQ(scale, 1e-8f / 127);
  const auto bias = kernels::random_floats(kN, 12);
  for (const QuantizedLayer& layer : every_w4_storage()) {
    SCOPED_TRACE(layer.scheme + (layer.smoothed ? " smoothed" : ""));
    const OwnedSlots made = made_slots(layer, {kN, kK}, 6);
    auto x = kernels::random_floats(3 * kK, 13);
    const auto before = forward(layer, made, x, bias).first;
    for (std::size_t k = 0; k < kK; ++k) x[kK + k] = k % 2 == 0 ? 0.0f : -0.0f;
    const auto [y, row] = forward(layer, made, x, bias);
    EXPECT_EQ(row, -1);
    const std::span rows(y), old(before);
    EXPECT_EQ(kernels::first_difference(rows.subspan(kN, kN), bias), -1);
    EXPECT_EQ(kernels::first_difference(rows.first(kN), old.first(kN)), -1);
    EXPECT_EQ(kernels::first_difference(rows.last(kN), old.last(kN)), -1);
    x[kK + 7] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(forward(layer, made, x, bias).second, 1);
  }
}

// What a column weighs in the search moves codes: those of the column that weighs all lose less.
TEST(W4A8, RoundsForTheColumnsThatMatter) {
  auto values = kernels::random_floats(kN * kK, 3);
  for (float& value : values) value *= value * value;  // tails, so that cutting a range pays
  const WeightSource weight{.shape = {kN, kK}, .rows = [&](std::int64_t n, std::span<float> out) {
                              std::copy_n(values.begin() + n * kK, kK, out.begin());
                            }};
  std::vector<double> importance(kK, 1e-6);
  for (std::size_t k = 0; k < kK; k += 32) importance[k] = 1;
  for (const char* scheme : {"w4a8_g128", "w4a8_chn"}) {
    const QuantizedLayer layer = quantized_layer(scheme);
    const auto loss = [&](const Calibration& calibration) {
      const auto tensors = quant_method(scheme).quantize(weight, calibration, kNative).value();
      const auto read = read_w4(*w4_form(scheme), *layer.zero_domain, tensors.view()).value();
      const auto decoded = formats::decoded(read);
      double sum = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        sum += importance[i % kK] * (values[i] - decoded[i]) * (values[i] - decoded[i]);
      }
      return sum;
    };
    EXPECT_LT(loss({.importance = importance}), loss({})) << scheme;
  }
}

TEST(W4A8, IsEncodedToTheSameBytesByAnyNumberOfThreads) {
  constexpr std::int64_t kMany = 160;  // rows of several blocks, the last one not whole
  const auto values = kernels::random_floats(kMany * kK, 5);
  const WeightSource weight{.shape = {kMany, kK}, .rows = [&](std::int64_t n, std::span<float> out) {
                              std::copy_n(values.begin() + n * kK, kK, out.begin());
                            }};
  std::vector<double> importance(kK, 1);
  for (std::size_t k = 0; k < kK; ++k) importance[k] += static_cast<double>(k % 7);
  for (const char* scheme : {"w4a8_g128", "w4a8_chn"}) {
    const auto alone = quant_method(scheme).quantize(weight, {.importance = importance}, kNative).value();
    for (const int threads : {1, 2, 5}) {
      ThreadPool pool(threads);
      MethodOptions options = kNative;
      options.pool = &pool;
      const auto shared = quant_method(scheme).quantize(weight, {.importance = importance}, options).value();
      for (const auto& [suffix, tensor] : alone.tensors) {
        EXPECT_EQ(tensor.bytes, shared.tensors.at(suffix).bytes) << scheme << " " << suffix << " " << threads;
      }
    }
  }
}

TEST(W4A8, NamesTheRowThatIsNotFinite) {
  for (const char* scheme : {"w4a8_g128", "w4a8_chn"}) {
    const auto made = quant_method(scheme).quantize(
        {.shape = {kN, kK},
         .rows =
             [](std::int64_t n, std::span<float> out) {
               std::ranges::fill(out, n == 17 ? std::numeric_limits<float>::infinity() : 1.0f);
             }},
        {}, kNative);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().what, "row 17 of the weight holds NaN or infinity");
  }
}

}  // namespace
}  // namespace oasr::quant
