#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/indexing.h"
#include "formats/w4_import.h"
#include "tensor/dtype.h"

namespace oasr::formats {
namespace {

constexpr double kResidue = 1e-3;
constexpr int kSigned = 8;  // what codes that count from -8 are moved by

// Whether a quotient is an integer, up to kResidue and up to the rounding of what it was made of: numerators
// of a size of `rounded` in all, and the denominator, were rounded to float16, 2⁻¹¹ each. Codes and values
// are below 256.
bool is_integer(double quotient, double rounded) {
  return std::fabs(quotient - std::nearbyint(quotient)) <= kResidue + 0x1p-10 * rounded &&
         std::fabs(quotient) < 256;
}

std::string place(std::int64_t n, std::int64_t k) { return fmt::format("channel {}, column {}", n, k); }

Unexpected not_integer(std::string_view what, double value, std::string where) {
  return unexpected(ErrorCode::bad_checkpoint, fmt::format("the {} {} is not an integer", what, value),
                    std::move(where), "the scales or the zero domain belong to another weight");
}

Result<std::vector<int>> integers(std::string_view what, std::span<const float> values, std::int64_t row) {
  std::vector<int> out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double nearest = std::nearbyint(values[i]);
    if (!(std::fabs(values[i] - nearest) <= kResidue) || std::fabs(nearest) > 0x1p15) {
      const auto n = static_cast<std::int64_t>(i) / row, g = static_cast<std::int64_t>(i) % row;
      return not_integer(what, values[i], fmt::format("channel {}, group {}", n, g));
    }
    out.push_back(static_cast<int>(nearest));
  }
  return out;
}

Status check_sizes(const FakeQuantWeight& f) {
  TRY(check_shape(f.form, f.n, f.k));
  const bool grouped = f.form == W4Form::per_group;
  const std::size_t n = at(f.n), groups = grouped ? n * at(f.k / kGroup) : 0;
  if (f.weight.size() == n * at(f.k) && f.channel_scale.size() == n && f.group_scale.size() == groups &&
      f.zero.size() == (grouped ? groups : n)) {
    return {};
  }
  return unexpected(ErrorCode::bad_checkpoint,
                    fmt::format("a weight [{}, {}] {} with {} channel scales, {} group scales and {} zeros",
                                f.n, f.k, enum_name(w4_form_names(), f.form), f.channel_scale.size(),
                                f.group_scale.size(), f.zero.size()),
                    {}, "the group size, or the file, is another one");
}

// `codes` [N, K] as codes of the weight; `move` is added to each.
Status set_codes(const std::vector<int>& codes, int move, W4Weight& out) {
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const int code = codes[i] + move;
    if (code < 0 || code > kMostCode) {
      const auto k = static_cast<std::int64_t>(i);
      return unexpected(ErrorCode::bad_checkpoint, fmt::format("{} is no code", codes[i]),
                        place(k / out.k, k % out.k),
                        "the scales or the zero domain belong to another weight");
    }
    out.codes[i] = static_cast<std::uint8_t>(code);
  }
  return {};
}

bool any_negative(const std::vector<int>& values) {
  return std::any_of(values.begin(), values.end(), [](int value) { return value < 0; });
}

Status recover_groups(const FakeQuantWeight& fake, W4Weight& out) {
  const std::int64_t groups = out.groups();
  const std::vector<int> scale = TRY(integers("group scale", fake.group_scale, groups));
  std::vector<int> zero = TRY(integers("zero", fake.zero, groups));
  const bool pre_scaled = fake.domain == ZeroDomain::pre_scaled;
  const int move_zeros = pre_scaled && any_negative(zero) ? kSigned : 0;
  for (std::size_t i = 0; i < zero.size(); ++i) {
    const auto where = [&] { return fmt::format("channel {}, group {}", i / at(groups), i % at(groups)); };
    if (scale[i] < 1 || scale[i] > 127) {
      return unexpected(ErrorCode::bad_checkpoint,
                        fmt::format("the group scale {} is outside 1..127", scale[i]), where());
    }
    if (pre_scaled) zero[i] = (zero[i] + move_zeros) * scale[i];
  }
  std::vector<int> codes;
  for (std::int64_t n = 0; n < out.n; ++n) {
    for (std::int64_t k = 0; k < out.k; ++k) {
      const double quotient = fake.weight[at(n * out.k + k)] / static_cast<double>(out.channel_scale[at(n)]);
      if (!is_integer(quotient, std::fabs(quotient))) {
        return not_integer("value", quotient, place(n, k));
      }
      const std::size_t g = at(n * groups + k / kGroup);
      const int product = static_cast<int>(std::nearbyint(quotient)) + zero[g];
      if (product % scale[g] != 0) {
        return not_integer("code", static_cast<double>(product) / scale[g], place(n, k));
      }
      codes.push_back(product / scale[g]);
    }
  }
  const int move_codes = !pre_scaled && any_negative(codes) ? kSigned : 0;
  for (std::size_t i = 0; i < zero.size(); ++i) {
    out.group_scale[i] = static_cast<std::uint8_t>(scale[i]);
    out.scaled_zero[i] = static_cast<std::int16_t>(
        std::clamp(zero[i] + move_codes * scale[i], -32768, 32767));  // check() refuses what is cut here
  }
  return set_codes(codes, move_codes, out);
}

Status recover_channels(const FakeQuantWeight& fake, W4Weight& out) {
  const bool pre_scaled = fake.domain == ZeroDomain::pre_scaled;
  std::vector<int> zero_codes;
  if (pre_scaled) {
    zero_codes = TRY(integers("zero", fake.zero, 1));
    const int move = any_negative(zero_codes) ? kSigned : 0;
    for (int& zero : zero_codes) zero += move;
  }
  std::vector<int> codes;
  for (std::int64_t n = 0; n < out.n; ++n) {
    const double scale = out.channel_scale[at(n)];
    const double zero = pre_scaled ? zero_codes[at(n)] : fake.zero[at(n)] / scale;
    for (std::int64_t k = 0; k < out.k; ++k) {
      const double quotient = fake.weight[at(n * out.k + k)] / scale;
      if (!is_integer(quotient + zero, std::fabs(quotient) + (pre_scaled ? 0 : std::fabs(zero)))) {
        return not_integer("code", quotient + zero, place(n, k));
      }
      codes.push_back(static_cast<int>(std::nearbyint(quotient + zero)));
    }
  }
  const int move = !pre_scaled && any_negative(codes) ? kSigned : 0;
  for (std::size_t n = 0; n < out.channel_zero.size(); ++n) {
    const float scale = out.channel_scale[n];
    out.channel_zero[n] = pre_scaled ? static_cast<float>(zero_codes[n]) * scale
                                     : to_float(to_half(fake.zero[n] + static_cast<float>(move) * scale));
  }
  return set_codes(codes, move, out);
}

}  // namespace

Result<W4Weight> recover(const FakeQuantWeight& fake) {
  TRY(check_sizes(fake));
  W4Weight weight = W4Weight::sized(fake.form, fake.domain, fake.n, fake.k);
  for (std::size_t n = 0; n < weight.channel_scale.size(); ++n) {
    weight.channel_scale[n] = to_float(to_half(fake.channel_scale[n]));
  }
  TRY(fake.form == W4Form::per_group ? recover_groups(fake, weight) : recover_channels(fake, weight));
  TRY(check(weight));
  return weight;
}

}  // namespace oasr::formats
