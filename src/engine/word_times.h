// Word timestamps: cross-attention alignment and the reference's corrections of its durations.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/speech_model.h"
#include "oasr/transcript.h"

namespace oasr::engine {

struct WordTime {
  std::string text;
  std::vector<TokenId> tokens;
  double start = 0, end = 0;  // seconds from the window's start
  double probability = 0;
};

// Times of the words of `tokens` (text tokens) in an encoded window of which `frames` frames are
// audio: one teacher-forced pass, dynamic time warping over the alignment heads.
std::vector<WordTime> align_words(models::AedState& state, models::WindowId window,
                                  const models::AedModel& model,
                                  std::span<const TokenId> start_sequence,
                                  std::span<const TokenId> tokens, int frames,
                                  std::string_view language);

// Joins marks that belong to the word after (`prepended`) or before (`appended`) to it; joined
// words are left behind empty.
void merge_punctuation(std::vector<WordTime>& words, std::string_view prepended,
                       std::string_view appended);

// Shares the words of a window out to its segments, shortens those that a pause made too long and
// pulls the segments' ends to their words. `last_speech` is the end of the last word before, in
// seconds. Words of one segment and times are as openai-whisper 20250625.
void set_words(std::vector<Segment>& segments, std::vector<WordTime> words, TokenId eot,
               double window_start, double last_speech, std::string_view prepended,
               std::string_view appended);

}  // namespace oasr::engine
