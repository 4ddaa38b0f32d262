#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "base/check.h"
#include "formats/group_rule.h"
#include "formats/indexing.h"
#include "formats/w4_import.h"
#include "tensor/dtype.h"

namespace oasr::formats {
namespace {

// Scale and zero of a group, and how often a code (q + 8) occurs in it: all that its errors depend on.
struct Int4Group {
  double scale = 0;
  int zero = 0;
  std::array<int, kMostCode + 1> count{};

  double number(int code) const { return scale * (code - zero); }
  int nearest_scale(double channel_scale) const {
    return static_cast<int>(std::clamp(std::nearbyint(scale / channel_scale), 1.0, 127.0));
  }
};

// The code whose number is the nearest.
int nearest_code(const Int4Group& group, double step, int code) {
  return static_cast<int>(
      std::clamp<double>(round_even(group.number(code) / step + group.zero), 0, kMostCode));
}

// The sum of squared errors with a channel scale; nothing if a code is no int8 then.
std::optional<double> loss(std::span<const Int4Group> row, double channel_scale) {
  double sum = 0;
  for (const Int4Group& group : row) {
    const int scale = group.nearest_scale(channel_scale);
    const double step = scale * channel_scale;
    for (int code = 0; code <= kMostCode; ++code) {
      if (group.count[at(code)] == 0) continue;
      const int levels = nearest_code(group, step, code) - group.zero;
      if (levels * scale < -128 || levels * scale > 127) return std::nullopt;
      const double error = group.number(code) - levels * step;
      sum += group.count[at(code)] * error * error;
    }
  }
  return sum;
}

struct ChannelScale {
  float scale = 0;
  double loss = std::numeric_limits<double>::infinity();
};

// The greatest scale of the row is an integer times the channel's; every integer is tried.
ChannelScale best_channel_scale(std::span<const Int4Group> row) {
  double greatest = 0;
  for (const Int4Group& group : row) greatest = std::max(greatest, group.scale);
  ChannelScale best;
  for (int integer = 1; integer <= 127; ++integer) {
    const float scale = std::max(to_float(to_half(static_cast<float>(greatest / integer))), 0x1p-24f);
    if (!std::isfinite(scale)) continue;
    const auto found = loss(row, scale);
    if (found && *found < best.loss) best = {scale, *found};
  }
  return best;
}

Status check_groups(const Int4Groups& in) {
  if (in.group_size != kGroup) {
    return unexpected(ErrorCode::unsupported,
                      fmt::format("groups of {}: only groups of {} are served", in.group_size, kGroup), {},
                      "quantize the original model here");
  }
  TRY(check_shape(W4Form::per_group, in.n, in.k));
  const std::size_t groups = at(in.n) * at(in.k / kGroup);
  if (in.q.size() != at(in.n) * at(in.k) || in.scale.size() != groups ||
      (!in.zero.empty() && in.zero.size() != groups)) {
    return unexpected(ErrorCode::bad_checkpoint,
                      fmt::format("a weight [{}, {}] with {} codes, {} scales and {} zeros", in.n, in.k,
                                  in.q.size(), in.scale.size(), in.zero.size()));
  }
  return {};
}

Result<Int4Group> group_of(const Int4Groups& in, std::int64_t n, std::int64_t g) {
  const std::size_t i = at(n * (in.k / kGroup) + g);
  const auto wrong = [&](const std::string& what) {
    return unexpected(ErrorCode::bad_checkpoint, what, fmt::format("channel {}, group {}", n, g));
  };
  Int4Group group{.scale = in.scale[i], .zero = in.zero.empty() ? 8 : in.zero[i] + 8};
  if (!(group.scale > 0) || !std::isfinite(group.scale)) {
    return wrong(fmt::format("the scale {} is no positive number", in.scale[i]));
  }
  if (group.zero < 0 || group.zero > kMostCode)
    return wrong(fmt::format("the zero {} is outside -8..7", in.zero[i]));
  for (const std::int8_t q : in.q.subspan(at(n * in.k + g * kGroup), kGroup)) {
    if (q < -8 || q > 7) return wrong(fmt::format("{} is outside -8..7", q));
    ++group.count[at(q + 8)];
  }
  return group;
}

void write_row(const Int4Groups& in, std::int64_t n, std::span<const Int4Group> row, float channel_scale,
               W4Weight& out) {
  out.channel_scale[at(n)] = channel_scale;
  for (std::size_t g = 0; g < row.size(); ++g) {
    const int scale = row[g].nearest_scale(channel_scale);
    const std::size_t i = at(n) * row.size() + g;
    out.group_scale[i] = static_cast<std::uint8_t>(scale);
    out.scaled_zero[i] = static_cast<std::int16_t>(row[g].zero * scale);
    const double step = scale * static_cast<double>(channel_scale);
    const std::size_t first = at(n * in.k) + g * kGroup;
    for (std::size_t k = first; k < first + kGroup; ++k) {
      out.codes[k] = static_cast<std::uint8_t>(nearest_code(row[g], step, in.q[k] + 8));
    }
  }
}

double squares(std::span<const Int4Group> row) {
  double sum = 0;
  for (const Int4Group& group : row) {
    for (int code = 0; code <= kMostCode; ++code) {
      sum += group.count[at(code)] * group.number(code) * group.number(code);
    }
  }
  return sum;
}

}  // namespace

Result<std::vector<std::int8_t>> unpack_words(std::span<const std::int32_t> words, std::int64_t rows,
                                              std::int64_t columns) {
  const std::int64_t row_words = (columns + 7) / 8;
  if (rows < 1 || columns < 1 || words.size() != at(rows) * at(row_words)) {
    return unexpected(ErrorCode::bad_checkpoint,
                      fmt::format("{} words do not hold 4-bit codes [{}, {}]", words.size(), rows, columns));
  }
  std::vector<std::int8_t> codes;
  codes.reserve(at(rows) * at(columns));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < columns; ++i) {
      const auto word = static_cast<std::uint32_t>(words[at(row * row_words + i / 8)]);
      codes.push_back(static_cast<std::int8_t>(static_cast<int>(word >> 4 * (i % 8) & 15) - 8));
    }
  }
  return codes;
}

Result<ImportedW4> from_int4_groups(const Int4Groups& groups, Inexact inexact) {
  TRY(check_groups(groups));
  ImportedW4 out;
  out.weight = W4Weight::sized(W4Form::per_group, ZeroDomain::pre_scaled, groups.n, groups.k);
  double losses = 0, sums = 0;
  std::vector<Int4Group> row(at(out.weight.groups()));
  for (std::int64_t n = 0; n < groups.n; ++n) {
    for (std::size_t g = 0; g < row.size(); ++g)
      row[g] = TRY(group_of(groups, n, static_cast<std::int64_t>(g)));
    const ChannelScale best = best_channel_scale(row);
    if (best.scale == 0) {
      return unexpected(ErrorCode::unsupported, "no float16 is a scale of the row",
                        fmt::format("channel {}", n));
    }
    write_row(groups, n, row, best.scale, out.weight);
    const double sum = squares(row);
    if (best.loss > 0) out.worst_error = std::max(out.worst_error, std::sqrt(best.loss / sum));
    losses += best.loss;
    sums += sum;
  }
  out.exact = losses == 0;
  if (!out.exact) out.error = std::sqrt(losses / sums);
  if (!out.exact && inexact == Inexact::refused) {
    return unexpected(
        ErrorCode::unsupported,
        fmt::format("group scales are no float16 times an integer; requantizing costs a relative error "
                    "of {:.2g}, {:.2g} in the worst row",
                    out.error, out.worst_error),
        {}, "allow requantizing, or quantize the original model here");
  }
  TRY(check(out.weight));
  return out;
}

}  // namespace oasr::formats
