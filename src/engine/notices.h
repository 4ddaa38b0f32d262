// Conditions of a recording that its reader should see, counted as they come and told once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "oasr/transcript.h"

namespace oasr::engine {

// Kinds of warnings, stable:
//   truncated_audio     the audio was damaged or ended early
//   audio               the container is odd (the source's own words), or samples far beyond full scale
//   running_maximum     a pipe was normalised by its loudest part so far
//   no_speech           windows were skipped: silent, steady, or without speech to the model or to
//                       voice activity detection
//   empty_result        the recording gave no text
//   token_limit         windows reached the token limit; their text may be cut
//   fallback_exhausted  windows kept the text of the last temperature although it looks wrong
//   no_alternatives     n_best was asked for, and there is more than one window
class Notices {
 public:
  void silent_window(double start, double seconds);
  void no_speech_window(double start, double seconds);
  // Samples far beyond full scale: `amplitude` is the root of the loudest 25 ms' mean square.
  void overloaded(double start, double amplitude) {
    overloaded_.add(start);
    amplitude_ = std::max(amplitude_, amplitude);
  }
  void unheard_window(double start, double seconds);
  void token_limit(double start) { token_limit_.add(start); }
  void fallback_exhausted(double start) { exhausted_.add(start); }

  // Appends the warnings to `transcript`; the other kinds are the caller's.
  void report(Transcript& transcript) const;

 private:
  struct Count {
    int count = 0;
    double first = 0;  // seconds
    double seconds = 0;
    void add(double start, double length = 0) {
      if (count++ == 0) first = start;
      seconds += length;
    }
  };
  Count silent_, no_speech_, unheard_, token_limit_, exhausted_, overloaded_;
  double amplitude_ = 0;
};

}  // namespace oasr::engine
