#include "decode/ctc_prefix_score.h"

#include "base/check.h"
#include "decode/log_math.h"

namespace oasr::decode {

CtcPrefixScorer::CtcPrefixScorer(const CtcScores& scores, int slots)
    : scores_(scores), slots_(static_cast<std::size_t>(slots)) {
  const auto frames = static_cast<std::size_t>(scores.frames);
  for (Slot& slot : slots_) {
    slot.non_blank.assign(frames, kLogZero);
    slot.blank.assign(frames, kLogZero);
    slot.both.assign(frames, kLogZero);
  }
}

void CtcPrefixScorer::start(int slot) {
  Slot& empty = slots_.at(static_cast<std::size_t>(slot));
  empty.last = -1;
  double sum = 0;
  for (int t = 0; t < scores_.frames; ++t) {
    const auto at = static_cast<std::size_t>(t);
    sum += double{scores_.row(t)[static_cast<std::size_t>(scores_.blank)]};
    empty.non_blank[at] = kLogZero;
    empty.blank[at] = empty.both[at] = sum;
  }
}

double CtcPrefixScorer::lead(const Slot& slot, TokenId token, int frame) const {
  if (frame == 0) return slot.last < 0 ? 0 : kLogZero;
  const auto before = static_cast<std::size_t>(frame - 1);
  return slot.last == token ? slot.blank[before] : slot.both[before];
}

void CtcPrefixScorer::extend(int from, TokenId token, int to) {
  CHECK(from != to, "a state is not extended in place");
  const Slot& source = slots_.at(static_cast<std::size_t>(from));
  Slot& made = slots_.at(static_cast<std::size_t>(to));
  made.last = token;
  double non_blank = kLogZero, blank = kLogZero;  // of the frame before
  for (int t = 0; t < scores_.frames; ++t) {
    const auto row = scores_.row(t);
    const auto at = static_cast<std::size_t>(t);
    const double both = t == 0 ? kLogZero : made.both[at - 1];
    blank = both + double{row[static_cast<std::size_t>(scores_.blank)]};
    non_blank =
        log_add(non_blank, lead(source, token, t)) + double{row[static_cast<std::size_t>(token)]};
    made.non_blank[at] = non_blank;
    made.blank[at] = blank;
    made.both[at] = log_add(non_blank, blank);
  }
}

double CtcPrefixScorer::score(int slot, TokenId token) const {
  if (token == scores_.blank) return kLogZero;
  const Slot& source = slots_.at(static_cast<std::size_t>(slot));
  double sum = kLogZero;
  for (int t = 0; t < scores_.frames; ++t) {
    const float emitted = scores_.row(t)[static_cast<std::size_t>(token)];
    sum = log_add(sum, lead(source, token, t) + double{emitted});
  }
  return sum;
}

double CtcPrefixScorer::score_end(int slot) const {
  const Slot& source = slots_.at(static_cast<std::size_t>(slot));
  if (scores_.frames == 0) return source.last < 0 ? 0 : kLogZero;
  return source.both.back();
}

}  // namespace oasr::decode
