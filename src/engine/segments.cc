#include "engine/segments.h"

#include <algorithm>

#include "text/utf8.h"

namespace oasr::engine {
namespace {

constexpr double kTimestampStep = 0.02;  // seconds
constexpr int kFramesPerStep = 2;

Segment new_segment(const DecodedWindow& decoded, std::span<const TokenId> tokens,
                    const models::AedModel& model, std::int64_t seek, double start, double end) {
  Segment segment;
  segment.seek = static_cast<int>(seek);
  segment.start = start;
  segment.end = end;
  segment.text = to_valid_utf8(model.tokenizer().decode(text_tokens(tokens, model.tokens().eot)));
  segment.tokens.assign(tokens.begin(), tokens.end());
  segment.temperature = decoded.temperature;
  segment.avg_logprob = decoded.avg_logprob;
  segment.compression_ratio = decoded.compression_ratio;
  segment.no_speech_prob = decoded.no_speech_prob;
  return segment;
}

// The positions after the first of two timestamps in a row.
std::vector<std::size_t> pair_positions(std::span<const TokenId> tokens, TokenId begin) {
  std::vector<std::size_t> positions;
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    if (tokens[i - 1] >= begin && tokens[i] >= begin) positions.push_back(i);
  }
  return positions;
}

}  // namespace

std::vector<TokenId> text_tokens(std::span<const TokenId> tokens, TokenId eot) {
  std::vector<TokenId> text;
  for (const TokenId id : tokens) {
    if (id < eot) text.push_back(id);
  }
  return text;
}

WindowSegments split_segments(const DecodedWindow& decoded, std::int64_t seek, int frames,
                              const models::AedModel& model, bool keep_tail) {
  const TokenId begin = model.tokens().timestamp_begin;
  const std::span<const TokenId> tokens = decoded.tokens;
  const std::size_t size = tokens.size();
  const double offset = seconds_at(seek);
  WindowSegments window;
  window.seek = seek + frames;
  window.single_timestamp_ending =
      size >= 2 && tokens[size - 1] >= begin && tokens[size - 2] < begin;

  auto cuts = pair_positions(tokens, begin);
  if (cuts.empty()) {
    double duration = seconds_at(frames);
    const auto last =
        std::find_if(tokens.rbegin(), tokens.rend(), [&](TokenId id) { return id >= begin; });
    if (last != tokens.rend() && *last != begin) duration = (*last - begin) * kTimestampStep;
    window.segments.push_back(new_segment(decoded, tokens, model, seek, offset, offset + duration));
    return window;
  }
  if (window.single_timestamp_ending) cuts.push_back(size);
  std::size_t from = 0;
  for (const std::size_t cut : cuts) {
    const auto part = tokens.subspan(from, cut - from);
    window.segments.push_back(new_segment(decoded, part, model, seek,
                                          offset + (part.front() - begin) * kTimestampStep,
                                          offset + (part.back() - begin) * kTimestampStep));
    from = cut;
  }
  if (keep_tail && from < size) {
    window.segments.push_back(new_segment(decoded, tokens.subspan(from), model, seek,
                                          offset + (tokens[from] - begin) * kTimestampStep,
                                          seconds_at(seek + frames)));
  } else if (!window.single_timestamp_ending) {
    window.seek = seek + std::int64_t{tokens[from - 1] - begin} * kFramesPerStep;
  }
  return window;
}

}  // namespace oasr::engine
