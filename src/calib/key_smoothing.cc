#include "calib/key_smoothing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "calib/smoothing.h"

namespace oasr::calib {
namespace {

constexpr double kLeastKey = 1e-6;

// The channel of the keys that a channel of the queries is multiplied with.
std::int64_t key_channel(const quant::AttentionScores& attention, std::int64_t query_channel) {
  const std::int64_t shared = attention.query_heads / attention.kv_heads;
  return query_channel / attention.head_dim / shared * attention.head_dim +
         query_channel % attention.head_dim;
}

// Among all channels of all heads.
std::int64_t partner_of(const quant::AttentionScores& attention, std::int64_t key_channel) {
  const std::int64_t in_head = key_channel % attention.head_dim;
  return key_channel - in_head + rotary_partner(attention, in_head);
}

void check_shape(const quant::AttentionScores& attention) {
  CHECK(attention.head_dim > 0 && attention.kv_heads > 0 && attention.query_heads % attention.kv_heads == 0,
        "whole groups of heads");
  CHECK(attention.pairing == quant::RotaryPairing::none || attention.head_dim % 2 == 0, "whole rotary pairs");
}

std::vector<float> part(const std::vector<float>& all, std::int64_t first, std::int64_t count) {
  CHECK(first >= 0 && first + count <= static_cast<std::int64_t>(all.size()), "rows outside the layer");
  return {all.begin() + first, all.begin() + first + count};
}

Status check_pairs(const KeyPlan& plan) {
  const auto& lambda = plan.scales.lambda;
  for (std::int64_t channel = 0; channel < plan.attention.key_channels(); ++channel) {
    const std::int64_t other = partner_of(plan.attention, channel);
    const double a = lambda[static_cast<std::size_t>(channel)], b = lambda[static_cast<std::size_t>(other)];
    if (a == b) continue;
    const std::int64_t d = plan.attention.head_dim;
    return unexpected(
        ErrorCode::invalid_argument,
        fmt::format("channels {} and {} of key head {} are a rotary pair, and their scales are {} and {}",
                    channel % d, other % d, channel / d, a, b),
        plan.attention.key, "give both channels of a pair one scale");
  }
  return {};
}

}  // namespace

std::int64_t rotary_partner(const quant::AttentionScores& attention, std::int64_t channel) {
  switch (attention.pairing) {
    case quant::RotaryPairing::none:
      break;
    case quant::RotaryPairing::split_half:
      return (channel + attention.head_dim / 2) % attention.head_dim;
    case quant::RotaryPairing::interleaved:
      return channel % 2 == 0 ? channel + 1 : channel - 1;
  }
  return channel;
}

KeyScales smooth_keys(const quant::AttentionScores& attention, const KeyMagnitudes& magnitudes,
                      double alpha) {
  check_shape(attention);
  const auto channels = static_cast<std::size_t>(attention.key_channels());
  const std::size_t queries = static_cast<std::size_t>(attention.query_heads * attention.head_dim);
  CHECK(magnitudes.keys.size() == channels && magnitudes.key_rows.size() == channels &&
            magnitudes.query_rows.size() == queries,
        "magnitudes of the attention's channels");
  std::vector<ExponentRange> ranges(channels, half_range(0, 0));
  for (std::size_t q = 0; q < queries; ++q) {
    const auto k = static_cast<std::size_t>(key_channel(attention, static_cast<std::int64_t>(q)));
    ranges[k] = ranges[k].both(half_range(0, magnitudes.key_rows[k]));
    ranges[k] = ranges[k].both(half_range(0, magnitudes.query_rows[q]).inverse());
  }
  KeyScales scales{.lambda = std::vector<double>(channels, 1.0), .alpha = alpha};
  for (std::size_t k = 0; k < channels; ++k) {
    const auto other = static_cast<std::size_t>(partner_of(attention, static_cast<std::int64_t>(k)));
    const double greatest = std::max(magnitudes.keys[k], magnitudes.keys[other]);
    if (!(greatest > 0)) {
      ++scales.idle;
      continue;
    }
    const ExponentRange range = ranges[k].both(ranges[other]);
    const double wanted = std::pow(std::max(greatest, kLeastKey), alpha);
    scales.lambda[k] = std::clamp(wanted, std::ldexp(1.0, range.least), std::ldexp(1.0, range.greatest));
    if (scales.lambda[k] != wanted) ++scales.clamped;
    if (scales.lambda[k] != 1) ++scales.moved;
  }
  return scales;
}

KeyPlan plan_keys(const quant::AttentionScores& attention, const Weights& weights,
                  const InputStatistics& keys, double alpha) {
  check_shape(attention);
  CHECK(keys.channels() == attention.key_channels(), "statistics of other channels");
  KeyMagnitudes magnitudes{
      .keys = {},
      .key_rows = part(weights.output_amax(attention.key), attention.key_row, attention.key_channels()),
      .query_rows = part(weights.output_amax(attention.query), attention.query_row,
                         attention.query_heads * attention.head_dim)};
  for (std::int64_t k = 0; k < keys.channels(); ++k) magnitudes.keys.push_back(keys.amax(k));
  return {.attention = attention, .scales = smooth_keys(attention, magnitudes, alpha)};
}

Status fold_keys(const KeyPlan& plan, const Weights& weights, Folds& folds) {
  const quant::AttentionScores& attention = plan.attention;
  check_shape(attention);
  const std::vector<double>& lambda = plan.scales.lambda;
  CHECK(static_cast<std::int64_t>(lambda.size()) == attention.key_channels(), "a scale of every channel");
  TRY(check_pairs(plan));
  if (std::ranges::all_of(lambda, [](double scale) { return scale == 1; })) return {};
  const auto factors_of = [&](const std::string& path, std::int64_t first, std::int64_t count) {
    std::vector<double>& factors = folds[path].factors;
    factors.resize(static_cast<std::size_t>(weights.rows(path)), 1.0);
    CHECK(first >= 0 && first + count <= static_cast<std::int64_t>(factors.size()), "rows outside the layer");
    return std::span(factors).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  };
  const auto keys = factors_of(attention.key, attention.key_row, attention.key_channels());
  for (std::size_t k = 0; k < keys.size(); ++k) keys[k] /= lambda[k];
  const auto queries =
      factors_of(attention.query, attention.query_row, attention.query_heads * attention.head_dim);
  for (std::size_t q = 0; q < queries.size(); ++q) {
    queries[q] *= lambda[static_cast<std::size_t>(key_channel(attention, static_cast<std::int64_t>(q)))];
  }
  return {};
}

}  // namespace oasr::calib
