#include "decode/ctc_prefix_beam.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "decode/log_math.h"

namespace oasr::decode {
namespace {

Unexpected bad_option(const std::string& what) {
  return unexpected(ErrorCode::invalid_argument, what, "CTC prefix beam search");
}

}  // namespace

std::vector<TokenId> CtcHypothesis::ids() const {
  std::vector<TokenId> all;
  all.reserve(tokens.size());
  for (const CtcToken& token : tokens) all.push_back(token.id);
  return all;
}

Result<CtcPrefixBeam> CtcPrefixBeam::make(const CtcBeamOptions& options) {
  if (options.vocabulary < 1) return bad_option("the vocabulary is empty");
  if (options.blank < 0 || options.blank >= options.vocabulary) {
    return bad_option("the blank, " + std::to_string(options.blank) +
                      ", is not in the vocabulary of " + std::to_string(options.vocabulary));
  }
  constexpr int kWidest = 4096;
  for (const int size : {options.first_beam, options.second_beam}) {
    if (size >= 1 && size <= kWidest) continue;
    return bad_option("a beam of " + std::to_string(size) + " is not in 1 to " +
                      std::to_string(kWidest));
  }
  if (options.blank_skip && !(*options.blank_skip > 0 && *options.blank_skip <= 1)) {
    return bad_option("blank_skip is a probability above 0 and up to 1");
  }
  return CtcPrefixBeam(options);
}

CtcPrefixBeam::CtcPrefixBeam(const CtcBeamOptions& options) : options_(options) {
  options_.first_beam = std::min(options.first_beam, options.vocabulary);
  const auto width = static_cast<std::size_t>(options_.second_beam);
  const auto tokens = static_cast<std::size_t>(options_.first_beam);
  beam_.reserve(width);
  next_.reserve(width);
  rank_of_.assign(static_cast<std::size_t>(options_.vocabulary), -1);
  taken_.resize(width * tokens);
  kept_.reserve(width + 1);
  fresh_.reserve(2 * width);
  reset();
}

void CtcPrefixBeam::reset() {
  tree_.clear();
  emissions_.clear();
  beam_.clear();
  fresh_.clear();
  frame_ = 0;
  // As the reference starts: the best alignment of the empty prefix is empty in both kinds.
  Hypothesis empty;
  empty.non_blank = kLogZero;
  tree_.hold(PrefixTree::kRoot);
  tree_.set_slot(PrefixTree::kRoot, 0);
  beam_.push_back(empty);
}

void CtcPrefixBeam::reset(std::shared_ptr<const ContextGraph> context) {
  options_.context = std::move(context);
  reset();
}

void CtcPrefixBeam::accept(const CtcFrames& frames) {
  CHECK(frames.vocabulary == options_.vocabulary && frames.blank == options_.blank && frames.width >= options_.first_beam,
        "the frames are of the search's vocabulary and as wide as its beam");
  for (int i = 0; i < frames.frames; ++i) step(frames, i);
}

void CtcPrefixBeam::step(const CtcFrames& frames, int frame) {
  raise_confidences(frames.tokens_before(frame));
  choose_tokens(frames, frame);
  kept_.clear();
  add_stays();
  add_extensions();
  if (!kept_.empty()) keep();  // else no token is possible: the frame says nothing
  for (const ScoredToken& token : best_) rank_of_[static_cast<std::size_t>(token.token)] = -1;
  best_ = {};
  ++frame_;
}

// The frame's tokens and their ranks.
void CtcPrefixBeam::choose_tokens(const CtcFrames& frames, int frame) {
  const float blank = frames.blanks[static_cast<std::size_t>(frame)];
  if (options_.blank_skip && exp_of_negative(double{blank}) > *options_.blank_skip) {
    skipped_ = {options_.blank, blank};
    best_ = {&skipped_, 1};
  } else {
    const auto possible = [](const ScoredToken& token) { return double{token.logit} > kLogZero; };
    best_ = frames.tokens(frame).first(static_cast<std::size_t>(options_.first_beam));
    while (!best_.empty() && !possible(best_.back())) best_ = best_.first(best_.size() - 1);
  }
  for (std::size_t i = 0; i < best_.size(); ++i) {
    rank_of_[static_cast<std::size_t>(best_[i].token)] = static_cast<int>(i);
  }
}

// Emissions of the frame before also see this frame's posterior.
void CtcPrefixBeam::raise_confidences(std::span<const float> tokens_before) {
  for (const auto [emission, rank] : fresh_) {
    if (emissions_.lives(emission)) emissions_.raise(emission, tokens_before[static_cast<std::size_t>(rank)]);
  }
  fresh_.clear();
}

// What a hypothesis passes on to its extension by `token`: after the same token only alignments
// that end in blank.
double CtcPrefixBeam::lead(const Hypothesis& parent, TokenId token) const {
  return parent.last == token ? parent.blank : parent.score;
}

// Prefixes that stay: by a blank, by their last token again, by the extension of a hypothesis that
// is one token shorter.
void CtcPrefixBeam::add_stays() {
  const auto tokens = best_.size();
  std::fill_n(taken_.begin(), beam_.size() * tokens, static_cast<unsigned char>(0));
  const int blank_rank = rank_of_[static_cast<std::size_t>(options_.blank)];
  for (std::size_t i = 0; i < beam_.size(); ++i) {
    const Hypothesis& hypothesis = beam_[i];
    const int index = static_cast<int>(i);
    Candidate stay{.from = index, .blank = kLogZero, .non_blank = kLogZero};
    stay.order = event(static_cast<int>(tokens), 0, false);
    if (blank_rank >= 0) {
      stay.blank = hypothesis.score + double{best_[static_cast<std::size_t>(blank_rank)].logit};
      stay.order = event(blank_rank, index, false);
    }
    const int rank =
        hypothesis.last >= 0 ? rank_of_[static_cast<std::size_t>(hypothesis.last)] : -1;
    if (rank >= 0) {
      const double logit = best_[static_cast<std::size_t>(rank)].logit;
      stay.non_blank = hypothesis.non_blank + logit;
      stay.order = std::min(stay.order, event(rank, index, false));
      stay.parent = tree_[tree_[hypothesis.prefix].parent].slot;
      if (stay.parent >= 0) {
        const auto above = static_cast<std::size_t>(stay.parent);
        const Hypothesis& parent = beam_[above];
        stay.non_blank = log_add(stay.non_blank, lead(parent, hypothesis.last) + logit);
        stay.order = std::min(stay.order, event(rank, stay.parent, parent.last == hypothesis.last));
        taken_[above * tokens + static_cast<std::size_t>(rank)] = 1;
      }
    }
    stay.score = log_add(stay.blank, stay.non_blank);
    stay.total = stay.score + hypothesis.context_score;
    consider(stay);
  }
}

// Prefixes that are not in the beam yet.
void CtcPrefixBeam::add_extensions() {
  for (std::size_t rank = 0; rank < best_.size(); ++rank) {
    const auto [token, logit] = best_[rank];
    if (token == options_.blank) continue;
    for (std::size_t i = 0; i < beam_.size(); ++i) {
      if (taken_[i * best_.size() + rank]) continue;
      const Hypothesis& parent = beam_[i];
      Candidate added{.from = static_cast<int>(i), .rank = static_cast<int>(rank)};
      added.order = event(added.rank, added.from, parent.last == token);
      added.blank = kLogZero;
      added.non_blank = added.score = lead(parent, token) + double{logit};
      added.total = added.score + parent.context_score;
      if (options_.context) added.total += options_.context->step(parent.context, token).bonus;
      consider(added);
    }
  }
}

// Keeps the best second_beam candidates, sorted; nearly all fail the first comparison.
void CtcPrefixBeam::consider(const Candidate& candidate) {
  if (!(candidate.total > kLogZero)) return;
  const auto before = [](const Candidate& a, const Candidate& b) {
    return a.total > b.total || (a.total == b.total && a.order < b.order);
  };
  const bool full = kept_.size() == static_cast<std::size_t>(options_.second_beam);
  if (full && !before(candidate, kept_.back())) return;
  if (full) kept_.pop_back();
  kept_.insert(std::upper_bound(kept_.begin(), kept_.end(), candidate, before), candidate);
}

// Makes hypotheses of what is kept. New nodes are held before old ones are released.
void CtcPrefixBeam::keep() {
  next_.clear();
  for (const Candidate& candidate : kept_) {
    next_.push_back(candidate.rank < 0 ? stay(candidate) : extend(candidate));
  }
  for (const Hypothesis& hypothesis : beam_) tree_.set_slot(hypothesis.prefix, -1);
  for (const Hypothesis& hypothesis : beam_) release(hypothesis);
  beam_.swap(next_);
  for (std::size_t i = 0; i < beam_.size(); ++i) {
    tree_.set_slot(beam_[i].prefix, static_cast<int>(i));
  }
}

// The likeliest alignments of a prefix that stays. The reference sees its own last token and the
// parent's extension in beam order, and keeps the parent's frames if it saw that first, even when
// the own alignment then turns out likelier.
CtcPrefixBeam::Hypothesis CtcPrefixBeam::stay(const Candidate& candidate) {
  const Hypothesis& old = beam_[static_cast<std::size_t>(candidate.from)];
  Hypothesis made = old;
  tree_.hold(made.prefix);
  made.blank = candidate.blank;
  made.non_blank = candidate.non_blank;
  made.score = candidate.score;
  made.best_blank = made.best_non_blank = kLogZero;
  made.blank_times = made.non_blank_times = kNoNode;
  const int blank_rank = rank_of_[static_cast<std::size_t>(options_.blank)];
  if (blank_rank >= 0) {
    made.best_blank = old.best() + double{best_[static_cast<std::size_t>(blank_rank)].logit};
    made.blank_times = old.times();
    emissions_.hold(made.blank_times);
  }
  const int rank = old.last >= 0 ? rank_of_[static_cast<std::size_t>(old.last)] : -1;
  if (rank < 0) return made;
  const float logit = best_[static_cast<std::size_t>(rank)].logit;
  const double own = old.best_non_blank + double{logit};
  double others = kLogZero;
  NodeId before = kNoNode;
  if (candidate.parent >= 0) {
    const Hypothesis& parent = beam_[static_cast<std::size_t>(candidate.parent)];
    const bool same = parent.last == old.last;
    others = (same ? parent.best_blank : parent.best()) + double{logit};
    before = same ? parent.blank_times : parent.times();
  }
  made.best_non_blank = std::max(own, others);
  const bool parent_first = candidate.parent >= 0 && candidate.parent < candidate.from;
  const bool from_parent = others > kLogZero && (parent_first || others > own);
  if (from_parent) {
    made.non_blank_times = emissions_.add(before, frame_, old.last, logit);
  } else if (own > kLogZero) {
    const EmissionLists::Node& newest = emissions_[old.non_blank_times];
    const float greatest = std::max(newest.log_probability, logit);
    made.non_blank_times = emissions_.add(newest.before, frame_, old.last, greatest);
  } else {
    return made;
  }
  fresh_.push_back({made.non_blank_times, rank});
  return made;
}

CtcPrefixBeam::Hypothesis CtcPrefixBeam::extend(const Candidate& candidate) {
  const Hypothesis& parent = beam_[static_cast<std::size_t>(candidate.from)];
  const auto [token, logit] = best_[static_cast<std::size_t>(candidate.rank)];
  Hypothesis made;
  NodeId child = tree_[parent.prefix].first_child;
  while (child != kNoNode && tree_[child].token != token) child = tree_[child].next_sibling;
  if (child == kNoNode) {
    child = tree_.add(parent.prefix, token);
  } else {
    tree_.hold(child);  // a prefix that was pruned and whose extensions live
  }
  made.prefix = child;
  made.last = token;
  made.blank = kLogZero;
  made.non_blank = made.score = candidate.score;
  made.best_blank = kLogZero;
  const bool same = parent.last == token;
  made.best_non_blank = (same ? parent.best_blank : parent.best()) + double{logit};
  if (made.best_non_blank > kLogZero) {
    made.non_blank_times =
        emissions_.add(same ? parent.blank_times : parent.times(), frame_, token, logit);
    fresh_.push_back({made.non_blank_times, candidate.rank});
  }
  made.context_score = parent.context_score;
  if (options_.context) {
    const ContextGraph::Step step = options_.context->step(parent.context, token);
    made.context = step.state;
    made.context_score += step.bonus;
  }
  return made;
}

void CtcPrefixBeam::release(const Hypothesis& hypothesis) {
  tree_.release(hypothesis.prefix);
  emissions_.release(hypothesis.blank_times);
  emissions_.release(hypothesis.non_blank_times);
}

CtcHypothesis CtcPrefixBeam::result(const Hypothesis& hypothesis, double context_score) const {
  CtcHypothesis made;
  made.ctc_score = hypothesis.score;
  made.context_score = context_score;
  made.score = hypothesis.score + context_score;
  made.tokens.resize(static_cast<std::size_t>(tree_[hypothesis.prefix].length));
  NodeId prefix = hypothesis.prefix;
  NodeId emission = hypothesis.times();
  for (auto token = made.tokens.rbegin(); token != made.tokens.rend(); ++token) {
    CHECK(emission != kNoNode, "every token of a possible hypothesis was emitted");
    const EmissionLists::Node& shown = emissions_[emission];
    *token = {tree_[prefix].token, shown.frame, exp_of_negative(double{shown.log_probability})};
    prefix = tree_[prefix].parent;
    emission = shown.before;
  }
  return made;
}

std::vector<CtcHypothesis> CtcPrefixBeam::results() const {
  std::vector<CtcHypothesis> all;
  all.reserve(beam_.size());
  for (const Hypothesis& hypothesis : beam_) {
    double context = hypothesis.context_score;
    if (options_.context) context += options_.context->back_off(hypothesis.context);
    all.push_back(result(hypothesis, context));
  }
  std::stable_sort(all.begin(), all.end(), [](const CtcHypothesis& a, const CtcHypothesis& b) {
    return a.score > b.score;
  });
  return all;
}

CtcHypothesis CtcPrefixBeam::best() const {
  return result(beam_.front(), beam_.front().context_score);
}

int CtcPrefixBeam::trailing_frames() const {
  const NodeId newest = beam_.front().times();
  return newest == kNoNode ? frame_ : frame_ - 1 - emissions_[newest].frame;
}

std::vector<TokenId> CtcPrefixBeam::stable_prefix() const {
  NodeId common = beam_.front().prefix;
  for (const Hypothesis& hypothesis : beam_) {
    NodeId other = hypothesis.prefix;
    while (common != other) {
      NodeId& deeper = tree_[common].length >= tree_[other].length ? common : other;
      deeper = tree_[deeper].parent;
    }
  }
  std::vector<TokenId> tokens(static_cast<std::size_t>(tree_[common].length));
  for (auto token = tokens.rbegin(); token != tokens.rend(); ++token) {
    *token = tree_[common].token;
    common = tree_[common].parent;
  }
  return tokens;
}

}  // namespace oasr::decode
