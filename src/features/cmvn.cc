#include "features/cmvn.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "base/check.h"
#include "base/json.h"

namespace oasr {
namespace {

Unexpected bad(std::string what, std::string_view where) {
  return unexpected(ErrorCode::bad_checkpoint, std::move(what), std::string(where),
                    "check that the file is the cmvn of this model");
}

struct Sums {
  std::vector<double> values, squares;
  double frames = 0;
};

Result<Cmvn> from_sums(const Sums& sums, std::string_view where, std::int64_t channels) {
  for (const auto& [list, name] : {std::pair{&sums.values, "mean_stat"}, {&sums.squares, "var_stat"}}) {
    if (static_cast<std::int64_t>(list->size()) == channels) continue;
    return bad(std::string(name) + " has " + std::to_string(list->size()) + " values for " +
                   std::to_string(channels) + " channels", where);
  }
  if (!(sums.frames > 0) || !std::isfinite(sums.frames)) {
    return bad("the number of frames is " + std::to_string(sums.frames), where);
  }
  constexpr double kLeastVariance = 1e-20;
  Cmvn cmvn;
  for (std::size_t i = 0; i < sums.values.size(); ++i) {
    const double mean = sums.values[i] / sums.frames;
    const double variance = sums.squares[i] / sums.frames - mean * mean;
    const auto mean_value = static_cast<float>(mean);
    if (!std::isfinite(mean_value) || !std::isfinite(variance)) {
      return bad("channel " + std::to_string(i) + " has a mean or variance that is not finite", where);
    }
    cmvn.mean.push_back(mean_value);
    cmvn.istd.push_back(static_cast<float>(1.0 / std::sqrt(std::max(variance, kLeastVariance))));
  }
  return cmvn;
}

Result<std::vector<double>> number_list(const Json& json, const char* key, std::string_view where) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_array()) return bad(std::string(key) + " is not a list of numbers", where);
  std::vector<double> values;
  for (const Json& value : *found) {
    if (!value.is_number()) {
      return bad(std::string(key) + " holds a value that is no number, at " + std::to_string(values.size()), where);
    }
    values.push_back(value.get<double>());
  }
  return values;
}

// The words of a text, separated by white space.
std::vector<std::string_view> words_of(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  std::vector<std::string_view> words;
  for (std::size_t at = text.find_first_not_of(kSpace); at != text.npos;) {
    const std::size_t end = std::min(text.find_first_of(kSpace, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(kSpace, end);
  }
  return words;
}

}  // namespace

void Cmvn::apply(std::span<float> frames) const {
  const std::size_t channels = mean.size();
  CHECK(channels > 0 && istd.size() == channels && frames.size() % channels == 0, "whole frames of the channels");
  for (std::size_t at = 0; at < frames.size(); at += channels) {
    for (std::size_t c = 0; c < channels; ++c) frames[at + c] = (frames[at + c] - mean[c]) * istd[c];
  }
}

Result<Cmvn> cmvn_from_json(std::string_view text, std::string_view where, std::int64_t channels) {
  const Json json = TRY(parse_json(text, where));
  if (!json.is_object()) return bad("the cmvn is not a JSON object", where);
  Sums sums;
  sums.values = TRY(number_list(json, "mean_stat", where));
  sums.squares = TRY(number_list(json, "var_stat", where));
  const auto frames = json.find("frame_num");
  if (frames == json.end() || !frames->is_number()) return bad("frame_num is not a number", where);
  sums.frames = frames->get<double>();
  return from_sums(sums, where, channels);
}

Result<Cmvn> cmvn_from_kaldi(std::string_view text, std::string_view where, std::int64_t channels) {
  if (text.starts_with(std::string_view("\0B", 2))) {
    return bad("the cmvn is a binary Kaldi matrix, and only the text form is read", where);
  }
  const auto words = words_of(text);
  if (words.size() < 2 || words.front() != "[" || words.back() != "]") {
    return bad("the cmvn is not a Kaldi matrix, \"[ … ]\"", where);
  }
  std::vector<double> values;
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    double value = 0;
    const char* end = words[i].data() + words[i].size();
    const auto parsed = std::from_chars(words[i].data(), end, value);
    if (parsed.ec != std::errc() || parsed.ptr != end || !std::isfinite(value)) {
      return bad("the cmvn holds a value that is no finite number, at " + std::to_string(i - 1), where);
    }
    values.push_back(value);
  }
  // Two rows: the sums and the number of frames, the squares and a zero.
  const std::size_t row = values.size() / 2;
  if (values.size() < 4 || values.size() % 2 != 0 || values.back() != 0) {
    return bad("the cmvn is not two rows of sums, the second of which ends in 0", where);
  }
  const auto at = [&](std::size_t i) { return values.begin() + static_cast<std::ptrdiff_t>(i); };
  const Sums sums{.values = {at(0), at(row - 1)}, .squares = {at(row), at(2 * row - 1)}, .frames = values[row - 1]};
  return from_sums(sums, where, channels);
}

}  // namespace oasr
