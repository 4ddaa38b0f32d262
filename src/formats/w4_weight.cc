#include "formats/w4_weight.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "tensor/dtype.h"

namespace oasr::formats {
namespace {

constexpr std::array kFormNames = {
    EnumName<W4Form>{W4Form::per_group, "per_group"},
    EnumName<W4Form>{W4Form::per_channel, "per_channel"},
};

constexpr std::array kDomainNames = {
    EnumName<ZeroDomain>{ZeroDomain::pre_scaled, "pre_scaled"},
    EnumName<ZeroDomain>{ZeroDomain::post_scaled, "post_scaled"},
};

constexpr std::array kRuleNames = {
    EnumName<W4Rule>{W4Rule::sizes, "sizes"},
    EnumName<W4Rule>{W4Rule::channel_scale, "channel_scale"},
    EnumName<W4Rule>{W4Rule::channel_zero, "channel_zero"},
    EnumName<W4Rule>{W4Rule::code, "code"},
    EnumName<W4Rule>{W4Rule::group_scale, "group_scale"},
    EnumName<W4Rule>{W4Rule::zero, "zero"},
    EnumName<W4Rule>{W4Rule::product, "product"},
    EnumName<W4Rule>{W4Rule::value, "value"},
};

constexpr std::int64_t kMostSum = 2'147'483'647;
static_assert(kMostColumns * 128 * 128 <= kMostSum && (kMostColumns + 1) * 128 * 128 > kMostSum);

Unexpected broken(W4Rule rule, const std::string& where, const std::string& what) {
  return unexpected(ErrorCode::bad_checkpoint,
                    fmt::format("rule {}: {}", enum_name(w4_rule_names(), rule), what), where,
                    "the weight is damaged, or it is not of the format that was named");
}

bool is_float16(float value) { return std::isfinite(value) && to_float(to_half(value)) == value; }

bool has_sizes(const W4Weight& w) {
  const auto n = static_cast<std::size_t>(w.n), groups = n * static_cast<std::size_t>(w.groups());
  return w.codes.size() == n * static_cast<std::size_t>(w.k) && w.channel_scale.size() == n &&
         w.group_scale.size() == groups && w.scaled_zero.size() == groups &&
         w.channel_zero.size() == (w.form == W4Form::per_channel ? n : 0);
}

Status check_channel(const W4Weight& w, std::int64_t n) {
  const auto where = [&] { return fmt::format("channel {}", n); };
  const float scale = w.channel_scale[static_cast<std::size_t>(n)];
  if (!(scale > 0) || !is_float16(scale)) {
    return broken(W4Rule::channel_scale, where(), fmt::format("{} is no positive float16", scale));
  }
  if (w.form == W4Form::per_group) return {};
  const float zero = w.channel_zero[static_cast<std::size_t>(n)];
  const float code = std::nearbyint(zero / scale);
  const bool good = w.domain == ZeroDomain::post_scaled
                        ? is_float16(zero)
                        : code >= 0 && code <= kMostCode && code * scale == zero;
  if (good) return {};
  return broken(W4Rule::channel_zero, where(),
                fmt::format("{} at scale {} is no zero of the domain {}", zero, scale,
                            enum_name(zero_domain_names(), w.domain)));
}

struct CodeRange {
  int least, most;
};

CodeRange code_range(std::span<const std::uint8_t> codes) {
  const auto [least, most] = std::minmax_element(codes.begin(), codes.end());
  return {*least, *most};
}

// The codes of a channel's group; of the whole row per channel.
std::span<const std::uint8_t> group_codes(const W4Weight& w, std::int64_t n, std::int64_t g) {
  return std::span(w.codes).subspan(static_cast<std::size_t>(n * w.k + g * w.group_size()),
                                    static_cast<std::size_t>(w.group_size()));
}

Status check_group(const W4Weight& w, std::int64_t n, std::int64_t g, CodeSet set) {
  const auto where = [&] { return fmt::format("channel {}, group {}", n, g); };
  CodeRange codes = code_range(group_codes(w, n, g));
  if (codes.most > kMostCode) return broken(W4Rule::code, where(), fmt::format("{} is no code", codes.most));
  if (w.form == W4Form::per_channel) return {};
  if (set == CodeSet::all) codes = {0, kMostCode};
  const int scale = w.group_scale[static_cast<std::size_t>(n * w.groups() + g)];
  const int zero = w.scaled_zero[static_cast<std::size_t>(n * w.groups() + g)];
  if (scale < 1 || scale > 127)
    return broken(W4Rule::group_scale, where(), fmt::format("{} is outside 1..127", scale));
  const bool zero_is_good = w.domain == ZeroDomain::post_scaled
                                ? zero >= -128 && zero <= 127
                                : zero >= 0 && zero <= kMostCode * scale && zero % scale == 0;
  if (!zero_is_good) {
    return broken(W4Rule::zero, where(),
                  fmt::format("{} at scale {} is no zero of the domain {}", zero, scale,
                              enum_name(zero_domain_names(), w.domain)));
  }
  if (codes.most * scale > 255) {
    return broken(W4Rule::product, where(), fmt::format("{} · {} is above 255", codes.most, scale));
  }
  for (const int code : {codes.least, codes.most}) {
    const int value = code * scale - zero;
    if (value >= -128 && value <= 127) continue;
    return broken(W4Rule::value, where(),
                  fmt::format("{} · {} - {} = {} is no int8", code, scale, zero, value));
  }
  return {};
}

}  // namespace

std::span<const EnumName<W4Form>> w4_form_names() { return kFormNames; }
std::span<const EnumName<ZeroDomain>> zero_domain_names() { return kDomainNames; }
std::span<const EnumName<W4Rule>> w4_rule_names() { return kRuleNames; }

W4Weight W4Weight::sized(W4Form form, ZeroDomain domain, std::int64_t n, std::int64_t k) {
  W4Weight weight;
  weight.form = form;
  weight.domain = domain;
  weight.n = n;
  weight.k = k;
  const auto rows = static_cast<std::size_t>(n);
  weight.codes.resize(rows * static_cast<std::size_t>(k));
  weight.channel_scale.resize(rows);
  weight.group_scale.resize(rows * static_cast<std::size_t>(weight.groups()));
  weight.scaled_zero.resize(weight.group_scale.size());
  if (form == W4Form::per_channel) weight.channel_zero.resize(rows);
  return weight;
}

Status check_shape(W4Form form, std::int64_t n, std::int64_t k) {
  const bool grouped = form == W4Form::per_group;
  if (n >= 1 && k >= 1 && k <= kMostColumns && (!grouped || k % kGroup == 0)) return {};
  return unexpected(
      ErrorCode::unsupported,
      fmt::format("a weight [{}, {}] has no 4-bit form {}: K is at most {}{}", n, k,
                  enum_name(w4_form_names(), form), kMostColumns, grouped ? " and a multiple of 128" : ""),
      {}, "leave the layer in int8 or at full precision");
}

Status check(const W4Weight& weight, CodeSet codes) {
  TRY(check_shape(weight.form, weight.n, weight.k));
  if (!has_sizes(weight)) {
    return broken(W4Rule::sizes, {}, "codes, scales or zeros of another number than the shape says");
  }
  const std::int64_t groups = weight.k / weight.group_size();
  for (std::int64_t n = 0; n < weight.n; ++n) {
    TRY(check_channel(weight, n));
    for (std::int64_t g = 0; g < groups; ++g) TRY(check_group(weight, n, g, codes));
  }
  return {};
}

void decode_row(const W4Weight& weight, std::int64_t n, std::span<std::int8_t> out) {
  CHECK(n >= 0 && n < weight.n && static_cast<std::int64_t>(out.size()) == weight.k,
        "another row than the weight's");
  const std::uint8_t* codes = weight.codes.data() + n * weight.k;
  const bool grouped = weight.form == W4Form::per_group;
  const int zero = grouped ? 0 : zero_code(weight, n);
  for (std::int64_t k = 0; k < weight.k; ++k) {
    const auto g = static_cast<std::size_t>(n * weight.groups() + k / kGroup);
    const int value = grouped ? codes[k] * weight.group_scale[g] - weight.scaled_zero[g] : codes[k] - zero;
    out[static_cast<std::size_t>(k)] = static_cast<std::int8_t>(value);
  }
}

void decode_row(const W4Weight& weight, std::int64_t n, std::span<float> out) {
  CHECK(n >= 0 && n < weight.n && static_cast<std::int64_t>(out.size()) == weight.k,
        "another row than the weight's");
  const std::uint8_t* codes = weight.codes.data() + n * weight.k;
  const float scale = weight.channel_scale[static_cast<std::size_t>(n)];
  for (std::int64_t k = 0; k < weight.k; ++k) {
    float& value = out[static_cast<std::size_t>(k)];
    if (weight.form == W4Form::per_channel) {
      value = scale * static_cast<float>(codes[k]) - weight.channel_zero[static_cast<std::size_t>(n)];
      continue;
    }
    const auto g = static_cast<std::size_t>(n * weight.groups() + k / kGroup);
    value = scale * static_cast<float>(codes[k] * weight.group_scale[g] - weight.scaled_zero[g]);
  }
}

int zero_code(const W4Weight& weight, std::int64_t n) {
  CHECK(weight.form == W4Form::per_channel && weight.domain == ZeroDomain::pre_scaled, "the zero is no code");
  const auto i = static_cast<std::size_t>(n);
  return static_cast<int>(weight.channel_zero[i] / weight.channel_scale[i]);
}

}  // namespace oasr::formats
