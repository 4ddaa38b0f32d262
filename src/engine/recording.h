// One recording on its way through the decoder, as a state machine.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "audio/audio_source.h"
#include "decode/search.h"
#include "engine/fault_error.h"
#include "engine/notices.h"
#include "engine/plan.h"
#include "engine/prompt_context.h"
#include "engine/segments.h"
#include "engine/speech_source.h"
#include "engine/window_source.h"
#include "oasr/transcript.h"

namespace oasr::engine {


// Walks through the windows of a recording: skips silence, encodes, detects the language, decodes
// with fallback, and turns tokens into segments and the next window's place, as transcribe() of
// openai-whisper 20250625 does. Wants one search stepped at a time; everything else it does itself.
class Recording {
 public:
  // All must outlive the recording; `callbacks` are called from advance(). front_end: null for the processor.
  Recording(const Plan& plan, AudioSource& audio, const Callbacks& callbacks, models::AedState& state,
            MelDevice* front_end);
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // The three below, one after the other, go on until a search waits for logits or the recording is over.
  // While a search does, they do nothing.

  // Takes the text of a search that is done; may start the next attempt at the same window.
  void collect();
  // Reads on to the next window that may hold speech and computes its features: what takes no decoder.
  // Recordings may do so at a time.
  void prepare();
  // That window, if nothing else is to be encoded before it; borrowed until start().
  std::optional<models::MelWindow> window_to_encode() const;
  // It was encoded, together with those of other recordings.
  void encoded(models::WindowId window) { window_ = window; }
  // Encodes that window unless that is done, finds the language where it is not known, and starts the search.
  void start();

  // The search to step next; null when the recording is over.
  decode::Search* search() { return search_.get(); }
  bool over() const { return result_.has_value(); }
  // Whether a row of the decoder state is this recording's.
  bool owns(decode::RowId row) const { return std::ranges::find(rows_, row) != rows_.end(); }

  // Ends the recording with an error and gives its rows and window back.
  void fail(Error error);

  // When over, once.
  Result<Transcript> take_result() { return std::move(*result_); }

  // Seconds of audio that are decoded.
  double seconds_done() const { return seconds_at(seek_); }

 private:
  struct Attempt {
    DecodedWindow decoded;
    std::vector<decode::Hypothesis> hypotheses;
    bool failed = false;  // the thresholds ask for a higher temperature
    bool silent = false;  // nothing is said, by no-speech and log-probability
  };

  void attempt(Status (Recording::*step)());
  Status open();
  Status go_to_window();
  Status load_window();
  Status start_window();
  Status find_language_at_start();
  Status find_language(int frames);
  Status compute_features(int frames, bool with_silence);
  Status encode(int frames);
  Status check_faults();
  void start_attempt(int attempt);
  void end_attempt();
  Attempt judge() const;
  Status finish_attempt();
  bool is_empty(int frames) const;
  bool may_hold_speech() const;
  Status accept(const Attempt& attempt);
  Status time_words(WindowSegments& window);
  void emit(std::vector<Segment>& segments, double temperature);
  void keep_alternatives(const Attempt& attempt);
  void go_to(std::int64_t seek);
  void finish();
  void report_progress() const;
  double recording_seconds() const;
  // From the time of windows_ to the recording's.
  double real_time(double seconds) const;
  void to_real_time(Segment& segment) const;

  const Plan& plan_;
  AudioSource& audio_;
  const Callbacks& callbacks_;
  models::AedState& state_;
  MelDevice* front_end_;
  std::unique_ptr<SpeechSource> speech_;   // of the audio, with voice activity detection
  std::unique_ptr<WindowSource> windows_;  // of the audio, or of its speech
  PromptContext context_;
  Notices notices_;
  Transcript transcript_;
  std::string text_;  // bytes of all segments
  std::optional<Result<Transcript>> result_;

  std::size_t clip_ = 0;
  std::int64_t seek_ = 0;  // frame of the window
  int frames_ = 0;         // of the window, within recording and clip
  bool loaded_ = false;    // mel_ holds the window that is encoded next
  std::uint32_t decoded_windows_ = 0;
  double last_speech_ = 0;  // end of the last word, seconds
  std::optional<std::string> language_;
  bool language_at_start_ = false;  // is to be found before the first clip
  std::vector<float> mel_;
  std::optional<models::WindowId> window_;
  std::vector<decode::RowId> rows_;
  std::unique_ptr<decode::Search> search_;
  int attempt_ = 0;
};

}  // namespace oasr::engine
