#include "engine/ctc_search.h"

#include <algorithm>

#include "decode/word_times.h"
#include "text/compression.h"

namespace oasr::engine {
namespace {

std::vector<TokenId> ids_of(std::span<const decode::CtcToken> tokens) {
  std::vector<TokenId> ids;
  for (const decode::CtcToken& token : tokens) ids.push_back(token.id);
  return ids;
}

double mean_confidence(std::span<const decode::CtcToken> tokens) {
  double sum = 0;
  for (const decode::CtcToken& token : tokens) sum += token.confidence;
  return tokens.empty() ? 0 : sum / static_cast<double>(tokens.size());
}

}  // namespace

Result<CtcSearch> CtcSearch::make(const CtcPlan& plan) {
  CtcSearch search;
  if (plan.mode != CtcMode::ctc_greedy_search) search.beam_ = TRY(decode::CtcPrefixBeam::make(plan.prefix_beam()));
  return search;
}

void CtcSearch::accept(const decode::CtcFrames& frames) {
  greedy_.accept(frames);
  if (beam_) beam_->accept(frames);
}

std::vector<decode::CtcHypothesis> CtcSearch::hypotheses() const {
  if (beam_) return beam_->results();
  const decode::CtcBestPath& path = greedy_.result();
  return {{.tokens = path.tokens, .score = path.score, .ctc_score = path.score}};
}

std::vector<decode::CtcToken> CtcSearch::best() const { return beam_ ? beam_->best().tokens : greedy_.result().tokens; }

std::size_t CtcSearch::stable_tokens() const {
  return beam_ ? beam_->stable_prefix().size() : greedy_.result().tokens.size();
}

int CtcSearch::trailing_frames() const { return greedy_.trailing_frames(); }

std::vector<CtcResult> first_pass_results(const std::vector<decode::CtcHypothesis>& hypotheses) {
  std::vector<CtcResult> results;
  for (const decode::CtcHypothesis& hypothesis : hypotheses) {
    results.push_back({.tokens = hypothesis.tokens,
                       .score = hypothesis.score,
                       .confidence = mean_confidence(hypothesis.tokens)});
  }
  return results;
}

std::vector<CtcResult> rescored_results(const std::vector<decode::RescoredHypothesis>& hypotheses) {
  std::vector<CtcResult> results;
  for (const decode::RescoredHypothesis& hypothesis : hypotheses) {
    CtcResult result{.tokens = hypothesis.first.tokens, .score = hypothesis.score, .confidence = hypothesis.confidence};
    // The decoders' opinion of a token is worth more than the spike's height.
    for (std::size_t i = 0; i < result.tokens.size(); ++i) result.tokens[i].confidence = hypothesis.token_confidences[i];
    results.push_back(std::move(result));
  }
  return results;
}

std::string text_of(const CtcPlan& plan, std::span<const decode::CtcToken> tokens) {
  // One space between words: units such as a lone word start spell more.
  std::string text;
  for (const char c : plan.model->tokenizer().decode(ids_of(tokens))) {
    if (c != ' ' || (!text.empty() && text.back() != ' ')) text += c;
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

Segment make_segment(const CtcPlan& plan, const CtcResult& result, double offset, double duration) {
  Segment segment;
  segment.text = text_of(plan, result.tokens);
  segment.tokens = ids_of(result.tokens);
  const auto count = static_cast<double>(result.tokens.size());
  segment.avg_logprob = result.score / (count + 1);
  segment.compression_ratio = compression_ratio(segment.text);
  const decode::TokenClock clock{.seconds_per_frame = plan.seconds_per_frame(), .offset = offset, .longest_token = 0.4};
  const auto words = decode::word_times(result.tokens, plan.model->tokenizer(), clock);
  segment.start = words.empty() ? offset : words.front().start;
  segment.end = words.empty() ? offset : words.back().end;
  segment.start = std::clamp(segment.start, offset, offset + duration);
  segment.end = std::clamp(segment.end, segment.start, offset + duration);
  if (!plan.word_timestamps) return segment;
  for (const decode::TimedWord& word : words) {
    segment.words.push_back({.text = word.text,
                             .start = std::clamp(word.start, segment.start, segment.end),
                             .end = std::clamp(word.end, segment.start, segment.end),
                             .probability = word.confidence});
  }
  return segment;
}

}  // namespace oasr::engine
