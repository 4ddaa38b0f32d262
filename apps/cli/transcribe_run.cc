#include "cli/transcribe_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/exit_codes.h"
#include "cli/signals.h"

namespace oasr::cli {

int TranscribeRun::run(Recognizer& recognizer) {
  batched_ = arguments_.engine.batch_size > 1 && inputs_.size() > 1;
  batched_ ? run_together(recognizer) : run_one_by_one(recognizer);
  terminal_.clear_progress();
  if (inputs_.size() > 1 || skipped_ > 0) summary();
  // What was printed until then would pass for the whole text.
  if (interrupted() && done_ < inputs_.size()) {
    terminal_.error({ErrorCode::cancelled, "stopped before the end",
                     inputs_.size() == 1 ? inputs_.front().name() : std::string(), {}});
  }
  if (!terminal_.output_error()) terminal_.error(terminal_.output_error().error());
  return exit_status();
}

void TranscribeRun::run_one_by_one(Recognizer& recognizer) {
  for (std::size_t i = 0; i < inputs_.size() && !stopped(); ++i) {
    const auto& input = inputs_[i];
    streamed_ = 0;
    Callbacks callbacks;
    callbacks.cancelled = [this] { return stopped(); };
    const auto label = inputs_.size() > 1
                           ? fmt::format("{}/{} {}", i + 1, inputs_.size(), input.name())
                           : input.name();
    callbacks.progress = [this, label](double done, double total) {
      terminal_.progress(label, done, total, "s");
    };
    if (streams()) callbacks.segment = [&](const Segment& segment) { stream(input, segment); };
    finish(i, recognizer.transcribe(audio(input), arguments_.options, callbacks));
  }
}

void TranscribeRun::run_together(Recognizer& recognizer) {
  std::vector<AudioInput> audios;
  for (const auto& input : inputs_) audios.push_back(audio(input));
  Callbacks callbacks;
  callbacks.cancelled = [this] { return stopped(); };
  callbacks.progress = [this](double seconds, double) {
    terminal_.progress(fmt::format("{}/{}", done_ + failed_, inputs_.size()), seconds, 0,
                       "s of audio");
  };
  recognizer.transcribe_batch(
      audios, arguments_.options,
      [this](std::size_t index, Result<Transcript> result) { finish(index, result); }, callbacks);
}

void TranscribeRun::finish(std::size_t index, const Result<Transcript>& result) {
  const auto& input = inputs_[index];
  if (!result) {
    // A read that Ctrl-C cut short may come back as an error of the file.
    if (result.error().code != ErrorCode::cancelled && !interrupted()) fail(input, result.error());
    return;
  }
  if (auto delivered = deliver(input, *result); !delivered) {
    if (plan_.to_stdout()) return;  // told once, at the end
    fail(input, delivered.error());
    return;
  }
  ++done_;
  audio_seconds_ += result->duration;
  if (result->truncated) ++truncated_;
  if (result->text.find_first_not_of(" \n") == std::string::npos) ++empty_;
  for (const auto& warning : result->warnings) {
    terminal_.warn(input.name() + ": " + warning.message);
  }
  auto line = fmt::format("{}: {:.1f} s of audio", input.name(), result->duration);
  if (!result->language.empty()) line += fmt::format(", language {}, seed {}", result->language, result->seed);
  terminal_.detail(line);
}

void TranscribeRun::fail(const Input& input, const Error& error) {
  ++failed_;
  only_usage_errors_ = only_usage_errors_ && error.code == ErrorCode::invalid_argument;
  auto shown = error;
  if (shown.where.empty()) shown.where = input.audio;
  terminal_.error(shown);
  const bool json_lines = plan_.to_stdout() && inputs_.size() > 1 &&
                          plan_.formats().front() == OutputFormat::json;
  if (json_lines) (void)terminal_.print(format_json_error(error, context(input)));
}

Status TranscribeRun::deliver(const Input& input, const Transcript& transcript) {
  if (!plan_.to_stdout()) return plan_.write(input, transcript, context(input));
  const auto format = plan_.formats().front();
  if (format == OutputFormat::json && inputs_.size() > 1) {
    return terminal_.print(format_json_line(transcript, context(input)));
  }
  if (streams()) {
    // The head alone is a complete file of an input without text.
    return streamed_ == 0 ? terminal_.print(format_head(format)) : terminal_.output_error();
  }
  if (format == OutputFormat::json) {
    return terminal_.print(format_transcript(transcript, format, context(input)));
  }
  return terminal_.print_text(
      prefixed(input, format_transcript(transcript, format, context(input))));
}

void TranscribeRun::stream(const Input& input, const Segment& segment) {
  const auto format = plan_.formats().front();
  const auto piece = format_segment(segment, format, streamed_ + 1);
  if (piece.empty()) return;
  const auto head = streamed_++ == 0 ? format_head(format) : std::string();
  (void)terminal_.print_text(prefixed(input, head + piece));
}

bool TranscribeRun::streams() const {
  return plan_.to_stdout() && !batched_ && plan_.formats().front() != OutputFormat::json;
}

// As grep does: with several inputs every line says which it belongs to.
// A line end in a name would make a line of its own.
std::string TranscribeRun::prefixed(const Input& input, const std::string& lines) const {
  if (inputs_.size() == 1 || plan_.formats().front() != OutputFormat::txt) return lines;
  std::string name = input.name();
  if (name.find('\n') != std::string::npos) name = escaped(name);
  std::string text;
  for (std::size_t at = 0; at < lines.size();) {
    const auto end = std::min(lines.find('\n', at), lines.size() - 1);
    text += name + ": " + lines.substr(at, end + 1 - at);
    at = end + 1;
  }
  return text;
}

AudioInput TranscribeRun::audio(const Input& input) const {
  auto audio = arguments_.audio;
  audio.path = input.audio;
  return audio;
}

OutputContext TranscribeRun::context(const Input& input) const {
  return {input.id, input.audio, arguments_.engine.model, &arguments_.options};
}

bool TranscribeRun::stopped() const { return interrupted() || terminal_.output_failed(); }

void TranscribeRun::summary() const {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  auto line = fmt::format("{} transcribed", done_);
  if (failed_ > 0) line += fmt::format(", {} failed", failed_);
  if (skipped_ > 0) line += fmt::format(", {} skipped", skipped_);
  if (truncated_ > 0) line += fmt::format(", {} truncated", truncated_);
  if (empty_ > 0) line += fmt::format(", {} without text", empty_);
  const auto left = inputs_.size() - done_ - failed_;
  if (left > 0) line += fmt::format(", {} not reached", left);
  line += fmt::format("; {:.1f} s of audio in {:.1f} s", audio_seconds_, seconds);
  if (seconds > 0) line += fmt::format(" ({:.1f} times real time)", audio_seconds_ / seconds);
  terminal_.note(line);
}

int TranscribeRun::exit_status() const {
  if (interrupted()) return interrupt_code();
  if (!terminal_.output_error()) return kError;
  if (failed_ > 0 && done_ == 0 && only_usage_errors_) return kUsage;
  if (failed_ > 0) return done_ == 0 && skipped_ == 0 ? kAllFailed : kSomeFailed;
  if (truncated_ > 0) return kTruncated;
  return empty_ > 0 ? kNoText : kOk;
}

}  // namespace oasr::cli
