// Standard output and the messages and progress line on standard error.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "oasr/result.h"

namespace oasr::cli {

enum class Verbosity : std::uint8_t { quiet, normal, verbose };

// Results go to standard output, everything else to standard error. The progress line is drawn on
// a terminal only and steps aside for every other line. Not thread-safe.
class Terminal {
 public:
  // `progress`: draw a progress line even when standard error is no terminal.
  explicit Terminal(Verbosity verbosity = Verbosity::normal, bool progress = false);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool verbose() const { return verbosity_ == Verbosity::verbose; }

  // Writes a result at once. An io error (closed pipe, full disk) is kept: see output_error().
  Status print(std::string_view text);
  // The same of text for people: on a terminal its control characters are shown, not obeyed.
  Status print_text(std::string_view text);
  // The first error of print(), as after a closed pipe.
  const Status& output_error() const { return output_; }
  // Whether there is one; any thread may ask.
  bool output_failed() const { return output_failed_; }

  void error(const Error& error);        // "oasr: error: …", always
  void warn(std::string_view line);      // "oasr: warning: …", not when quiet
  void note(std::string_view line);      // not when quiet
  void detail(std::string_view line);    // when verbose

  // Redraws the progress line, at most ten times a second (where it is no terminal: a line every
  // two seconds). total 0: not known.
  void progress(std::string_view label, double done, double total, std::string_view unit);
  void clear_progress();

 private:
  void message(std::string_view line);

  Verbosity verbosity_;
  bool draw_;
  bool to_terminal_;
  int width_;
  bool drawn_ = false;
  Status output_;
  std::atomic<bool> output_failed_ = false;
  std::chrono::steady_clock::time_point last_draw_{};
};

// Control characters (C0, DEL, C1) and bytes that are not UTF-8 as \xNN: names of files and values of
// others must not steer the terminal. Line ends stay if `lines`.
std::string escaped(std::string_view text, bool lines = false);

// "12.3 MB" of 10^6 bytes.
std::string megabytes(double bytes);

}  // namespace oasr::cli
