// Where somebody speaks: Silero's voice activity detector (16 kHz) and the rules that make ranges
// of its probabilities.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "oasr/options.h"

namespace oasr {

inline constexpr int kVadStep = 512;  // samples of a probability: 32 ms

// Calls a body for each of `items`, in any order, perhaps on several threads; returns when all are done.
using ForEach = std::function<void(std::size_t items, const std::function<void(std::size_t)>& body)>;

// One after the other, on this thread.
void in_turn(std::size_t items, const std::function<void(std::size_t)>& body);

// The network. Its weights (MIT licence) are part of the library. Not thread-safe.
class SileroVad {
 public:
  // In vectors of at most so many floats: 4, 8 (AVX2) or 16 (AVX-512), where the processor has them. The bits are the same.
  explicit SileroVad(int most_lanes = 16);
  ~SileroVad();
  SileroVad(SileroVad&&) noexcept;
  SileroVad& operator=(SileroVad&&) noexcept;

  // The probability of speech in the next 32 ms of 16 kHz audio in [-1, 1]. Depends on all steps
  // since the start or the last reset.
  float step(std::span<const float, kVadStep> samples);
  // Of whole steps: the same bits, at a fraction of the time of each. What does not depend on the step before, three
  // quarters of the work and more, is done by `each`, eight steps an item. Appends.
  void steps(std::span<const float> samples, std::vector<float>& probabilities, const ForEach& each = in_turn);
  void reset();
  int lanes() const;  // floats of a vector

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Whether anybody speaks in `samples` (16 kHz, in [-1, 1]), heard by themselves: whether one step has
// a probability of `threshold` or more. Zeros fill the last step. Thread-safe.
bool holds_speech(std::span<const float> samples, float threshold = 0.5f);

// Samples [begin, end) of a recording.
struct SampleRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const SampleRange&) const = default;
};

// Ranges of speech by the rules of Silero's get_speech_timestamps (as in faster-whisper): speech
// begins at a probability of `threshold` or more and ends before min_silence_ms below
// max(threshold - 0.15, 0.01); shorter than min_speech_ms is dropped; longer than max_speech_s is
// cut at its last silence of 98 ms or more, if there is one. Each range is widened by
// speech_pad_ms, or to the middle of a shorter silence. Bounded memory. Not thread-safe.
class SpeechSegmenter {
 public:
  explicit SpeechSegmenter(const VadOptions& options);

  // Takes the probability of the next step; appends ranges that are final, in order.
  void push(float probability, std::vector<SampleRange>& speech);
  // Ends a recording of `samples`, which lie within the steps.
  void finish(std::int64_t samples, std::vector<SampleRange>& speech);

  // Ranges that are still to come begin here or later.
  std::int64_t settled() const;

 private:
  void hear_silence(std::int64_t at, std::vector<SampleRange>& speech);
  void forget_silences();
  void append(SampleRange range, std::vector<SampleRange>& speech);
  void link(std::int64_t begin, std::vector<SampleRange>& speech);
  void release(std::int64_t at, std::vector<SampleRange>& speech);
  void emit(std::int64_t end, std::vector<SampleRange>& speech);
  std::int64_t widened_begin(std::int64_t begin) const;
  std::int64_t widened_end(const SampleRange& range) const;

  float threshold_, silence_threshold_;
  double min_speech_, max_speech_, min_silence_, pad_;  // samples

  std::int64_t next_ = 0;  // first sample of the next step
  bool in_speech_ = false;
  std::int64_t begin_ = 0;          // of the speech that goes on, not widened
  std::int64_t silence_begin_ = 0;  // of a silence that may end it; 0: none
  std::int64_t cut_ = 0;            // where it can be cut if it grows too long; 0: nowhere
  std::int64_t resume_ = 0;         // where speech went on after `cut_`, if above it

  std::optional<std::int64_t>
      linked_begin_;  // of the speech that goes on, widened, once it is sure to last
  std::optional<SampleRange> pending_;  // a range whose widened end depends on the next
  std::int64_t emitted_end_ = 0;
};

// Both together: samples to ranges of speech. Bounded memory. Not thread-safe.
class VadStream {
 public:
  explicit VadStream(const VadOptions& options);

  // Appends ranges that are final, in order. Any sizes of pushes give the same ranges.
  void push(std::span<const float> samples, std::vector<SampleRange>& speech, const ForEach& each = in_turn);
  // Ends the recording. Nothing may be pushed afterwards.
  void finish(std::vector<SampleRange>& speech);

  // Ranges that are still to come begin here or later: earlier samples may be dropped.
  std::int64_t settled() const { return segmenter_.settled(); }

 private:
  SileroVad network_;
  SpeechSegmenter segmenter_;
  std::vector<float> buffer_;  // less than a step
  std::vector<float> probabilities_;
  std::int64_t samples_ = 0;
};

}  // namespace oasr
