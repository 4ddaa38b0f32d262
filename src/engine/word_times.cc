#include "engine/word_times.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "decode/alignment.h"
#include "decode/scores.h"
#include "engine/segments.h"
#include "text/word_split.h"

namespace oasr::engine {
namespace {

constexpr double kSecondsPerFrame = 0.02;  // of the encoder

bool within(std::string_view mark, std::string_view marks) {
  return marks.find(mark) != std::string_view::npos;
}

void append(std::vector<TokenId>& to, const std::vector<TokenId>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

double hundredths(double seconds) { return std::nearbyint(seconds * 100) / 100; }

// Durations that are not 0, and what counts as long.
struct Durations {
  double median = 0;
  double longest = 0;  // twice the median
  bool any = false;
};

Durations measure(const std::vector<WordTime>& words) {
  std::vector<double> all;
  for (const WordTime& word : words) {
    if (word.end != word.start) all.push_back(word.end - word.start);
  }
  Durations durations;
  if (all.empty()) return durations;
  std::sort(all.begin(), all.end());
  const std::size_t half = all.size() / 2;
  const double median = all.size() % 2 == 1 ? all[half] : (all[half - 1] + all[half]) / 2;
  durations.any = true;
  durations.median = std::min(0.7, median);
  durations.longest = 2 * durations.median;
  return durations;
}

// A long word at a sentence end is a pause that the alignment gave to a mark or its neighbour.
void cut_at_sentence_ends(std::vector<WordTime>& words, const Durations& durations) {
  constexpr std::string_view kEnds = ".。!！?？";
  for (std::size_t i = 1; durations.any && i < words.size(); ++i) {
    if (words[i].end - words[i].start <= durations.longest) continue;
    if (within(words[i].text, kEnds)) {
      words[i].end = words[i].start + durations.longest;
    } else if (within(words[i - 1].text, kEnds)) {
      words[i].start = words[i].end - durations.longest;
    }
  }
}

// Shortens the first words after a pause, then reconciles the segment's ends with its words'.
void fit_segment(Segment& segment, const Durations& durations, double last_speech) {
  auto& words = segment.words;
  Word& first = words.front();
  const bool two = words.size() > 1;
  if (first.end - last_speech > durations.median * 4 &&
      (first.end - first.start > durations.longest ||
       (two && words[1].end - first.start > durations.longest * 2))) {
    if (two && words[1].end - words[1].start > durations.longest) {
      const double boundary = std::max(words[1].end / 2, words[1].end - durations.longest);
      first.end = words[1].start = boundary;
    }
    first.start = std::max(0.0, first.end - durations.longest);
  }
  if (segment.start < first.end && segment.start - 0.5 > first.start) {
    first.start = std::max(0.0, std::min(first.end - durations.median, segment.start));
  } else {
    segment.start = first.start;
  }
  Word& last = words.back();
  if (segment.end > last.start && segment.end + 0.5 < last.end) {
    last.end = std::max(last.start + durations.median, segment.end);
  } else {
    segment.end = last.end;
  }
}

// The probability of every text token among text tokens, given the logits after each token of the
// aligned sequence.
std::vector<double> token_probabilities(std::span<const float> logits, std::size_t vocabulary,
                                        std::size_t first_row, std::span<const TokenId> tokens,
                                        TokenId eot) {
  std::vector<double> probabilities;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto row = logits.subspan((first_row + i) * vocabulary, static_cast<std::size_t>(eot));
    const float logit = row[static_cast<std::size_t>(tokens[i])];
    probabilities.push_back(std::exp(double{logit} - decode::log_sum_exp(row)));
  }
  return probabilities;
}

}  // namespace

std::vector<WordTime> align_words(models::AedState& state, models::WindowId window,
                                  const models::AedModel& model,
                                  std::span<const TokenId> start_sequence,
                                  std::span<const TokenId> tokens, int frames,
                                  std::string_view language) {
  const int used = frames / 2;
  if (tokens.empty() || used == 0) return {};
  const models::AedTokens& ids = model.tokens();
  std::vector<TokenId> sequence(start_sequence.begin(), start_sequence.end());
  sequence.push_back(ids.no_timestamps);
  sequence.insert(sequence.end(), tokens.begin(), tokens.end());
  sequence.push_back(ids.eot);

  const auto vocabulary = static_cast<std::size_t>(state.vocabulary_size());
  const auto size = static_cast<int>(sequence.size());
  const auto skipped = static_cast<int>(start_sequence.size());
  std::vector<float> logits(sequence.size() * vocabulary);
  const auto attention = state.alignment(window, sequence, logits);
  const int heads = static_cast<int>(ids.alignment_heads.size());
  const int window_frames = model.window_frames() / 2;
  const auto matrix = decode::alignment_matrix({attention, heads, size, window_frames}, used);
  // From <|notimestamps|>, whose row predicts the first text token, to before <|endoftext|>.
  const int rows = size - skipped - 1;
  const auto part =
      std::span(matrix).subspan(static_cast<std::size_t>(skipped) * static_cast<std::size_t>(used),
                                static_cast<std::size_t>(rows) * static_cast<std::size_t>(used));
  const auto first = decode::first_frames(decode::warp(part, rows, used), rows);
  const auto probabilities =
      token_probabilities(logits, vocabulary, static_cast<std::size_t>(skipped), tokens, ids.eot);

  std::vector<WordTime> words;
  std::size_t begin = 0;
  for (auto& word : split_to_words(model.tokenizer(), tokens, language)) {
    const std::size_t end = begin + word.tokens.size();
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += probabilities[i];
    words.push_back({std::move(word.text), std::move(word.tokens), first[begin] * kSecondsPerFrame,
                     first[end] * kSecondsPerFrame, sum / static_cast<double>(end - begin)});
    begin = end;
  }
  return words;
}

void merge_punctuation(std::vector<WordTime>& words, std::string_view prepended,
                       std::string_view appended) {
  if (words.size() < 2) return;
  for (std::size_t i = words.size() - 1, following = i; i-- > 0;) {
    WordTime& mark = words[i];
    if (!mark.text.starts_with(' ') || !within(strip(mark.text), prepended)) {
      following = i;
      continue;
    }
    WordTime& word = words[following];
    word.text = mark.text + word.text;
    append(mark.tokens, word.tokens);
    word.tokens = std::exchange(mark.tokens, {});
    mark.text.clear();
  }
  for (std::size_t i = 1, previous = 0; i < words.size(); ++i) {
    WordTime& mark = words[i];
    WordTime& word = words[previous];
    if (word.text.ends_with(' ') || !within(mark.text, appended)) {
      previous = i;
      continue;
    }
    word.text += mark.text;
    append(word.tokens, mark.tokens);
    mark.text.clear();
    mark.tokens.clear();
  }
}

void set_words(std::vector<Segment>& segments, std::vector<WordTime> words, TokenId eot,
               double window_start, double last_speech, std::string_view prepended,
               std::string_view appended) {
  const Durations durations = measure(words);
  cut_at_sentence_ends(words, durations);
  merge_punctuation(words, prepended, appended);
  std::size_t next = 0;
  for (Segment& segment : segments) {
    const std::size_t wanted = text_tokens(segment.tokens, eot).size();
    std::size_t taken = 0;
    segment.words.clear();
    for (; next < words.size() && taken < wanted; ++next) {
      const WordTime& word = words[next];
      taken += word.tokens.size();
      if (word.text.empty()) continue;
      segment.words.push_back({word.text, hundredths(window_start + word.start),
                               hundredths(window_start + word.end), word.probability});
    }
    if (segment.words.empty()) continue;
    fit_segment(segment, durations, last_speech);
    last_speech = segment.end;
  }
}

}  // namespace oasr::engine
