#include "eval/lengths.h"

#include <fmt/format.h>

#include <algorithm>

namespace oasr::eval {

LengthBuckets::LengthBuckets(std::span<const EvalUtterance> utterances)
    : timed_(std::ranges::any_of(utterances, [](const auto& u) { return u.seconds > 0; })) {
  ends_ = timed_ ? std::vector<double>{2, 5, 10, 15, 20, 30} : std::vector<double>{5, 10, 20, 30, 50};
}

std::size_t LengthBuckets::of(const EvalUtterance& utterance) const {
  if (timed_ && utterance.seconds == 0) return count() - 1;
  const double length = timed_ ? utterance.seconds : static_cast<double>(utterance.words.reference);
  const auto end = timed_ ? std::ranges::upper_bound(ends_, length) : std::ranges::lower_bound(ends_, length);
  return static_cast<std::size_t>(end - ends_.begin());
}

std::string LengthBuckets::name(std::size_t bucket) const {
  if (bucket == count() - 1) return "not known";
  const double from = bucket == 0 ? 0 : ends_[bucket - 1] + (timed_ ? 0 : 1);
  return bucket == ends_.size() ? fmt::format("{} and more", from)
                                : fmt::format("{}-{}", from, ends_[bucket]);
}

}  // namespace oasr::eval
