// The contract of products with int8 activations as test cases, for any kind of weight.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "kernels/scaled_mm/implementation.h"
#include "kernels/testing.h"

namespace oasr::kernels {

inline constexpr float kInf = std::numeric_limits<float>::infinity();

inline std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

inline std::vector<std::int8_t> random_int8(std::int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_int_distribution<int> any(-127, 127);
  std::vector<std::int8_t> values(size(count));
  for (std::int8_t& value : values) value = static_cast<std::int8_t>(any(engine));
  return values;
}

inline std::vector<float> random_scales(std::int64_t count, unsigned seed) {
  auto scales = random_floats(count, seed, 0.01f);
  for (float& scale : scales) scale = std::fabs(scale) + 1e-5f;
  return scales;
}

// What differs between kinds of weights: make(n, k, seed), the lanes that run here and their scratch().
template <class Weight>
struct WeightKind;

// A problem with its memory; rows have gaps, so that a write or read out of place is seen.
template <class Weight>
struct ScaledMMCase {
  ScaledMMCase(std::int64_t m, std::int64_t n, std::int64_t k, unsigned seed)
      : m(m),
        n(n),
        k(k),
        a(random_int8(m * (k + 3), seed)),
        a_scale(random_scales(m, seed + 1)),
        weight(WeightKind<Weight>::make(n, k, seed)),
        bias(random_floats(n, seed + 4)),
        residual(random_floats(m * (n + 1), seed + 5)),
        multiplier(random_floats(n, seed + 6, 20.0f)),
        with_bias(seed % 3 != 0),
        activation(seed % 2 == 0 ? some_activation(seed / 2) : Activation::none),
        with_residual(seed % 4 < 2),
        per_token(seed % 5 != 0) {}

  ScaledMMArgsOf<Weight> args() const {
    return {.a = a.data(),
            .lda = k + 3,
            .a_scale = per_token ? ActivationScale::per_token(a_scale.data())
                                 : ActivationScale::per_tensor(a_scale.data()),
            .m = m,
            .weight = &weight,
            .bias = with_bias ? bias.data() : nullptr,
            .activation = activation};
  }
  FloatOutput to(std::vector<float>& y) const {
    y.assign(size(m * (n + 5)), 77.0f);
    return {.residual = with_residual ? residual.data() : nullptr,
            .ldr = n + 1,
            .alpha = m % 2 == 0 ? 1.0f : 0.3f,
            .y = y.data(),
            .ldy = n + 5};
  }
  Int8Output to(std::vector<std::int8_t>& q) const {
    q.assign(size(m * (n + 5)), 99);
    return {.multiplier = multiplier.data(), .q = q.data(), .ldq = n + 5};
  }
  std::vector<std::byte> scratch() const {
    return std::vector<std::byte>(WeightKind<Weight>::scratch(m, k) + 64);
  }

  // Every lane, both outputs, panels cut in two.
  void expect_lanes_equal() const {
    std::vector<float> expected, y;
    std::vector<std::int8_t> expected_q, q;
    scaled_mm_reference(args(), to(expected));
    const NotFinite expected_found = scaled_mm_quant_reference(args(), to(expected_q));
    auto memory = scratch();
    std::byte* aligned = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
    const std::int64_t panels = weight.panels(), cut = panels / 3;
    for (const auto& lane : WeightKind<Weight>::lanes()) {
      const std::string what = std::string(lane.name) + " m " + std::to_string(m) + " n " +
                               std::to_string(n) + " k " + std::to_string(k);
      const FloatOutput out = to(y);
      lane.run(args(), out, 0, cut, aligned);
      lane.run(args(), out, cut, panels, aligned);
      ASSERT_EQ(first_difference(y, expected), -1) << what;
      const Int8Output out_q = to(q);
      NotFinite found = lane.run_quant(args(), out_q, 0, cut, aligned);
      found.merge(lane.run_quant(args(), out_q, cut, panels, aligned));
      ASSERT_EQ(q, expected_q) << what;
      ASSERT_EQ(found.row, expected_found.row) << what;
    }
  }

  std::int64_t m, n, k;
  std::vector<std::int8_t> a;
  std::vector<float> a_scale;
  Weight weight;
  std::vector<float> bias, residual, multiplier;
  bool with_bias;
  Activation activation;
  bool with_residual, per_token;
};

// A product that quantizes its own input, [M, K] with row stride ldx, beside the two calls that it
// stands for. Values of x in `odd` are not finite.
template <class Weight>
struct QuantizingScaledMMCase {
  QuantizingScaledMMCase(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t ldx, unsigned seed,
                         std::initializer_list<std::int64_t> odd = {})
      : product(m, n, k, seed),
        ldx(ldx),
        x(random_floats((m - 1) * ldx + k, seed + 7, 2.0f)),
        smooth_inv(random_floats(k, seed + 8)),
        multiplier(static_multiplier(smooth_inv, input_scale, k)),
        smooth(seed % 2 == 1) {
    for (const std::int64_t i : odd) x[size(i)] = i % 2 == 0 ? kInf : std::nanf("");
  }

  DynamicScaledMMArgsOf<Weight> dynamic() const {
    return {.x = x.data(),
            .ldx = ldx,
            .m = product.m,
            .smooth_inv = smooth ? smooth_inv.data() : nullptr,
            .weight = &product.weight,
            .bias = product.args().bias,
            .activation = product.args().activation};
  }
  StaticScaledMMArgsOf<Weight> fixed() const {
    return {.x = x.data(),
            .ldx = ldx,
            .m = product.m,
            .multiplier = multiplier.data(),
            .input_scale = &input_scale,
            .weight = &product.weight,
            .bias = product.args().bias,
            .activation = product.args().activation};
  }

  // The unfused pair; returns the lower of the rows that the two report.
  template <class Output>
  NotFinite pair(ExecContext& context, bool dynamically, const Output& out) const {
    const std::int64_t m = product.m, k = product.k;
    std::vector<std::int8_t> q(size(m * k));
    std::vector<float> scale(size(m));
    ScaledMMArgsOf<Weight> args = product.args();
    args.a = q.data();
    args.lda = k;
    NotFinite found;
    if (dynamically) {
      args.a_scale = ActivationScale::per_token(scale.data());
      found = quantize_per_token(context, {.x = x.data(),
                                           .ldx = ldx,
                                           .m = m,
                                           .k = k,
                                           .smooth_inv = dynamic().smooth_inv,
                                           .q = q.data(),
                                           .ldq = k,
                                           .scale = scale.data()});
    } else {
      args.a_scale = ActivationScale::per_tensor(&input_scale);
      found = quantize_static(context, {.x = x.data(),
                                        .ldx = ldx,
                                        .m = m,
                                        .k = k,
                                        .multiplier = multiplier.data(),
                                        .q = q.data(),
                                        .ldq = k});
    }
    if constexpr (std::is_same_v<Output, Int8Output>) {
      found.merge(scaled_mm_quant(context, args, out));
    } else {
      scaled_mm(context, args, out);
    }
    return found;
  }

  // Both ways to quantize and both outputs; `row` is the one that is reported. The references on request.
  void expect_pairs_equal(ExecContext& context, const std::string& what, std::int64_t row,
                          bool references = false) const {
    const auto check = [&](bool dynamically, auto call, const char* form) {
      expect_pair_equal(context, dynamically, call, what + form, row);
    };
    check(
        true, [&](const auto& out) { return scaled_mm_dynamic(context, dynamic(), out); }, " dynamic");
    check(
        false, [&](const auto& out) { return scaled_mm_static(context, fixed(), out); }, " static");
    if (!references) return;
    check(
        true, [&](const auto& out) { return scaled_mm_dynamic_reference(dynamic(), out); }, " reference");
    check(
        false, [&](const auto& out) { return scaled_mm_static_reference(fixed(), out); }, " reference");
  }

  template <class Call>
  void expect_pair_equal(ExecContext& context, bool dynamically, Call call, const std::string& what,
                         std::int64_t row) const {
    std::vector<float> expected, y;
    std::vector<std::int8_t> expected_q, q;
    EXPECT_EQ(pair(context, dynamically, product.to(expected)).row, row) << what;
    EXPECT_EQ(call(product.to(y)).row, row) << what;
    EXPECT_EQ(first_difference(y, expected), -1) << what;
    EXPECT_EQ(pair(context, dynamically, product.to(expected_q)).row, row) << what;
    EXPECT_EQ(call(product.to(q)).row, row) << what;
    EXPECT_EQ(q, expected_q) << what;
  }

  static constexpr float input_scale = 0.03f;
  ScaledMMCase<Weight> product;
  std::int64_t ldx;
  std::vector<float> x, smooth_inv, multiplier;
  bool smooth;
};

}  // namespace oasr::kernels
