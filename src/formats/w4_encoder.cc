#include "formats/w4_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "formats/group_rule.h"
#include "tensor/dtype.h"

namespace oasr::formats {
namespace {

constexpr int kLeastPercent = 50;  // of the range, in a search

// A scale is positive: that of a row of zeros is the least float16.
float float16_scale(double scale) { return std::max(to_float(to_half(static_cast<float>(scale))), 0x1p-24f); }

// It takes a few dozen milliseconds to find.
int bound_of(ZeroDomain domain) {
  static const std::array bounds = {protective_bound(kPreScaledRule), protective_bound(kPostScaledRule)};
  return bounds[domain == ZeroDomain::pre_scaled ? 0 : 1];
}

// Values that share parameters, and where their codes go.
struct Values {
  std::span<const double> values, importance;
  std::span<std::uint8_t> codes;

  // Writes the codes, code(value), that stand for number(code). The loss.
  template <class Code, class Number>
  double encode(Code code, Number number) const {
    double loss = 0;
    for (std::size_t k = 0; k < values.size(); ++k) {
      const double chosen = code(values[k]), error = values[k] - number(chosen);
      codes[k] = static_cast<std::uint8_t>(chosen);
      loss += importance[k] * error * error;
    }
    return loss;
  }
};

struct Range {
  double low = 0, high = 0;

  Range part(double share) const { return {low * share, high * share}; }
  Range with_zero() const { return {std::min(low, 0.0), std::max(high, 0.0)}; }
};

Range range_of(std::span<const double> values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {*low, *high};
}

// Values within the bound become int8 also with the parameters of a part of their range. A code that is not
// cut moves its value by scale / 2, at most 8; one that is cut moves it into the range. Of 119 that is 127.
// Of 120 it is 128 only where a tie at scale 16 goes up, which needs a scaled zero of 96 or less; but at
// scale 16 the ends are 232.5 apart, and the scaled zero is at least 112.
double encode_group(const GroupRule& rule, const GroupParameters& group, const Values& values) {
  return values.encode([&](double value) { return group_code(rule, group, value); },
                       [&](double code) { return group.value(code); });
}

// w = scale · (code - zero)
struct ChannelParameters {
  float scale = 1;
  double zero = 0;
  friend bool operator==(const ChannelParameters&, const ChannelParameters&) = default;
};

ChannelParameters channel_parameters(const Range& range) {
  const float scale = float16_scale((range.high - range.low) / kMostCode);
  return {scale, std::clamp<double>(round_even(-range.low / scale), 0, kMostCode)};
}

double encode_channel(const ChannelParameters& channel, const Values& values) {
  const double scale = channel.scale, zero = channel.zero;
  return values.encode(
      [&](double value) { return std::clamp<double>(round_even(value / scale + zero), 0, kMostCode); },
      [&](double code) { return (code - zero) * scale; });
}

// The parameters of the greatest share of a range with the least loss.
template <class Make, class Loss>
auto best_share(bool search, Make make, Loss loss) {
  auto best = make(1.0), tried = best;
  double least = loss(best);
  for (int percent = 99; search && percent >= kLeastPercent; --percent) {
    const auto parameters = make(percent / 100.0);
    if (parameters == tried) continue;
    tried = parameters;
    const double found = loss(parameters);
    if (found >= least) continue;
    least = found;
    best = parameters;
  }
  loss(best);  // writes its codes
  return best;
}

// Both set row n of a weight. False: no float16 is a scale of it.
bool encode_groups(W4Weight& weight, std::int64_t n, std::vector<double>& row,
                   std::span<const double> importance, bool search) {
  const auto [low, high] = range_of(row);
  const double bound = bound_of(weight.domain);
  const float scale = float16_scale(std::max(-low, high) / bound);
  if (!std::isfinite(scale)) return false;
  weight.channel_scale[static_cast<std::size_t>(n)] = scale;
  for (double& value : row) value = std::clamp(value / scale, -bound, bound);

  const GroupRule& rule = group_rule(weight.domain);
  for (std::int64_t g = 0; g < weight.groups(); ++g) {
    const auto first = static_cast<std::size_t>(g * kGroup);
    const Values values{
        .values = std::span(row).subspan(first, kGroup),
        .importance = importance.subspan(first, kGroup),
        .codes = std::span(weight.codes).subspan(static_cast<std::size_t>(n * weight.k) + first, kGroup)};
    const Range range = range_of(values.values);
    const GroupParameters best = best_share(
        search,
        [&](double share) {
          const Range part = range.part(share);
          return group_parameters(rule, part.low, part.high);
        },
        [&](const GroupParameters& group) { return encode_group(rule, group, values); });
    const auto i = static_cast<std::size_t>(n * weight.groups() + g);
    weight.group_scale[i] = static_cast<std::uint8_t>(best.scale);
    weight.scaled_zero[i] = static_cast<std::int16_t>(best.scaled_zero);
  }
  return true;
}

bool encode_whole_row(W4Weight& weight, std::int64_t n, const std::vector<double>& row,
                      std::span<const double> importance, bool search) {
  const Values values{
      .values = row,
      .importance = importance,
      .codes = std::span(weight.codes).subspan(static_cast<std::size_t>(n) * row.size(), row.size())};
  const Range range = range_of(row).with_zero();
  if (!std::isfinite(channel_parameters(range).scale)) return false;
  const ChannelParameters best = best_share(
      search, [&](double share) { return channel_parameters(range.part(share)); },
      [&](const ChannelParameters& channel) { return encode_channel(channel, values); });
  weight.channel_scale[static_cast<std::size_t>(n)] = best.scale;
  weight.channel_zero[static_cast<std::size_t>(n)] = static_cast<float>(best.zero) * best.scale;
  return true;
}

Status check_finite(std::int64_t row, std::span<const float> values) {
  if (std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) return {};
  return unexpected(ErrorCode::bad_checkpoint, fmt::format("row {} of the weight holds NaN or infinity", row), {},
                    "the checkpoint is damaged: get it again");
}

void in_turn(std::int64_t items, const std::function<void(std::int64_t)>& body) {
  for (std::int64_t item = 0; item < items; ++item) body(item);
}

}  // namespace

Result<W4Weight> encode(std::int64_t n, std::int64_t k, const RowSource& rows, const W4Options& options,
                        std::span<const double> importance, const ForEach& each) {
  constexpr std::int64_t kBlock = 64;  // rows that are read together
  TRY(check_shape(options.form, n, k));
  const bool grouped = options.form == W4Form::per_group;
  W4Weight weight = W4Weight::sized(options.form, grouped ? options.domain : ZeroDomain::pre_scaled, n, k);
  const std::vector<double> ones(importance.empty() ? static_cast<std::size_t>(k) : 0, 1.0);
  if (importance.empty()) importance = ones;
  CHECK(static_cast<std::int64_t>(importance.size()) == k, "importance of another length than a row");
  const auto width = static_cast<std::size_t>(k);
  std::vector<float> block(static_cast<std::size_t>(kBlock) * width);
  std::array<bool, kBlock> fits = {};
  const ForEach run = each ? each : ForEach(in_turn);
  for (std::int64_t first = 0; first < n; first += kBlock) {
    const std::int64_t count = std::min(kBlock, n - first);
    const auto row_of = [&](std::int64_t i) {
      return std::span(block).subspan(static_cast<std::size_t>(i) * width, width);
    };
    for (std::int64_t i = 0; i < count; ++i) {
      rows(first + i, row_of(i));
      TRY(check_finite(first + i, row_of(i)));
    }
    run(count, [&](std::int64_t i) {
      std::vector<double> values(row_of(i).begin(), row_of(i).end());
      fits[static_cast<std::size_t>(i)] =
          grouped ? encode_groups(weight, first + i, values, importance, options.search)
                  : encode_whole_row(weight, first + i, values, importance, options.search);
    });
    const auto bad = std::find(fits.begin(), fits.begin() + count, false);
    if (bad != fits.begin() + count) {
      return unexpected(ErrorCode::bad_checkpoint,
                        fmt::format("row {} of the weight is too great for a float16 scale",
                                    first + (bad - fits.begin())),
                        {}, "leave the layer in int8 or at full precision");
    }
  }
  CHECK(check(weight).has_value(), "the encoder broke a rule");
  return weight;
}

}  // namespace oasr::formats
