#include "cli/streaming_run.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "cli/exit_codes.h"
#include "cli/signals.h"
#include "oasr/outputs.h"
#include "oasr/streaming.h"

namespace oasr::cli {
namespace {

using Json = nlohmann::ordered_json;

double rounded(double seconds) { return std::round(seconds * 1000) / 1000; }

std::string event_json(const StreamEvent& event) {
  Json json;
  if (event.kind == StreamEvent::Kind::partial) {
    json = {{"type", "partial"}, {"utterance", event.utterance}, {"text", event.text},
            {"stable", event.text.substr(0, event.stable)}, {"time", rounded(event.time)}};
  } else if (event.kind == StreamEvent::Kind::final) {
    const Segment& segment = event.segment;
    json = {{"type", "final"}, {"utterance", event.utterance}, {"text", segment.text},
            {"start", rounded(segment.start)}, {"end", rounded(segment.end)}, {"tokens", segment.tokens},
            {"avg_logprob", segment.avg_logprob}, {"time", rounded(event.time)}};
    json["endpoint"] = event.endpoint.empty() ? Json("the end of the audio") : Json(event.endpoint);
    if (!segment.words.empty()) {
      json["words"] = Json::array();
      for (const Word& word : segment.words) {
        json["words"].push_back({{"word", word.text}, {"start", rounded(word.start)}, {"end", rounded(word.end)},
                                 {"probability", word.probability}});
      }
    }
  } else {
    json = {{"type", "done"}, {"utterances", event.utterance}, {"time", rounded(event.time)}};
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// The last characters of `text` that fit into a line of the terminal.
std::string tail(const std::string& text) {
  winsize size{};
  const std::size_t width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 4 ? size.ws_col - 2u : 78u;
  if (text.size() <= width) return text;
  std::size_t at = text.size() - width;
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;  // not inside a character
  return text.substr(at);
}

enum class Style { drawn, events, lines };

class Printer {
 public:
  Printer(Style style, Terminal& terminal) : style_(style), terminal_(terminal) {}

  void operator()(const StreamEvent& event) {
    texts_ += event.kind == StreamEvent::Kind::final && !event.text.empty();
    switch (style_) {
      case Style::events: (void)terminal_.print(event_json(event)); return;
      case Style::lines:
        if (event.kind == StreamEvent::Kind::final) (void)terminal_.print_text(event.text + "\n");
        return;
      case Style::drawn:
        if (event.kind == StreamEvent::Kind::done) return;
        (void)terminal_.print("\r\x1b[K");
        if (event.kind == StreamEvent::Kind::final) {
          (void)terminal_.print_text(event.text + "\n");
        } else {
          (void)terminal_.print(escaped(tail(event.text)));
        }
    }
  }
  int texts() const { return texts_; }

 private:
  Style style_;
  Terminal& terminal_;
  int texts_ = 0;
};

Result<Style> style_of(const TranscribeArguments& arguments) {
  const bool to_terminal = isatty(STDOUT_FILENO) == 1;
  if (arguments.formats.empty()) return to_terminal ? Style::drawn : Style::events;
  if (arguments.formats.size() == 1 && arguments.formats[0] == "json") return Style::events;
  if (arguments.formats.size() == 1 && arguments.formats[0] == "txt") return to_terminal ? Style::drawn : Style::lines;
  return unexpected(ErrorCode::invalid_argument, "a stream is written as txt or json", "--output-format");
}

}  // namespace

int run_streaming(const TranscribeArguments& arguments, const Input& input, const std::string& model,
                  Terminal& terminal) {
  const auto end_with = [&](const Error& error) {
    terminal.error(error);
    return exit_code_of(error);
  };
  const auto style = style_of(arguments);
  if (!style) return end_with(style.error());
  auto config = arguments.engine;
  config.model = model;
  auto recognizer = StreamingRecognizer::load(config, arguments.options, arguments.streaming);
  if (!recognizer) return end_with(recognizer.error());
  AudioInput audio = arguments.audio;
  audio.path = input.audio;
  Printer printer(*style, terminal);
  Callbacks callbacks;
  callbacks.cancelled = [&] { return interrupted() || terminal.output_failed(); };
  auto status = recognizer->transcribe(audio, std::ref(printer), callbacks);
  if (!terminal.output_error()) return end_with(terminal.output_error().error());
  if (!status) {
    Error error = std::move(status).error();
    if (error.where.empty()) error.where = input.name();
    if (*style == Style::drawn) (void)terminal.print("\n");
    terminal.error(error);
    if (interrupted()) return interrupt_code();
    // As for a file: damaged audio with a text is a result.
    if (error.code == ErrorCode::bad_audio) return printer.texts() > 0 ? kTruncated : kAllFailed;
    return exit_code_of(error);
  }
  if (printer.texts() > 0) return kOk;
  terminal.warn(input.name() + ": the recording gave no text");
  return kNoText;
}

}  // namespace oasr::cli
