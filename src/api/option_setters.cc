#include "api/option_setters.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

namespace oasr {
namespace {

template <class T>
bool parse_number(std::string_view text, T& target) {
  T value{};
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size()) return false;
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) return false;
  }
  target = value;
  return true;
}

bool parse(std::string_view text, std::string& target) {
  target = text;
  return true;
}
bool parse(std::string_view text, int& target) { return parse_number(text, target); }
bool parse(std::string_view text, std::uint64_t& target) { return parse_number(text, target); }
bool parse(std::string_view text, double& target) { return parse_number(text, target); }

bool parse(std::string_view text, std::optional<int>& target) {
  int value = 0;
  if (!parse_number(text, value)) return false;
  target = value;
  return true;
}

bool parse(std::string_view text, bool& target) {
  if (text != "true" && text != "false") return false;
  target = text == "true";
  return true;
}

// One more of an option that is given several times.
bool parse(std::string_view text, std::vector<std::string>& target) {
  target.emplace_back(text);
  return true;
}

// One more phrase: "TEXT" or "TEXT:WEIGHT".
bool parse(std::string_view text, std::vector<Hotword>& target) {
  Hotword word{.text = std::string(text)};
  const auto colon = text.rfind(':');
  if (colon != std::string_view::npos && parse_number(text.substr(colon + 1), word.weight)) {
    word.text = text.substr(0, colon);
  }
  target.push_back(std::move(word));
  return true;
}

bool parse(std::string_view text, std::optional<double>& target) {
  if (text == "none") {
    target.reset();
    return true;
  }
  double value = 0;
  if (!parse_number(text, value)) return false;
  target = value;
  return true;
}

bool parse(std::string_view text, std::vector<double>& target) {
  std::vector<double> values;
  while (true) {
    const auto comma = std::min(text.find(','), text.size());
    double value = 0;
    if (!parse_number(text.substr(0, comma), value)) return false;
    values.push_back(value);
    if (comma == text.size()) break;
    text.remove_prefix(comma + 1);
  }
  target = std::move(values);
  return true;
}

struct Setter {
  std::string_view name;
  bool (*set)(NamedOptions& options, std::string_view value);
};

template <auto Member>
constexpr auto engine = [](NamedOptions& o, std::string_view v) { return parse(v, o.engine.*Member); };
template <auto Member>
constexpr auto option =
    [](NamedOptions& o, std::string_view v) { return parse(v, o.transcribe.*Member); };
template <auto Member>
constexpr auto vad =
    [](NamedOptions& o, std::string_view v) { return parse(v, o.transcribe.vad.*Member); };
template <auto Member>
constexpr auto ctc =
    [](NamedOptions& o, std::string_view v) { return parse(v, o.transcribe.ctc.*Member); };

using T = TranscribeOptions;

constexpr std::array kSetters = {
    Setter{"model", engine<&EngineConfig::model>},
    Setter{"dtype", engine<&EngineConfig::dtype>},
    Setter{"quantization", engine<&EngineConfig::quantization>},
    Setter{"quantization-option", engine<&EngineConfig::quantization_options>},
    Setter{"device", engine<&EngineConfig::device>},
    Setter{"arithmetic", engine<&EngineConfig::arithmetic>},
    Setter{"threads", engine<&EngineConfig::threads>},
    Setter{"batch-size", engine<&EngineConfig::batch_size>},
    Setter{"download", engine<&EngineConfig::download>},
    Setter{"language", option<&T::language>},
    Setter{"task", option<&T::task>},
    Setter{"beam-size", option<&T::beam_size>},
    Setter{"best-of", option<&T::best_of>},
    Setter{"patience", option<&T::patience>},
    Setter{"length-penalty", option<&T::length_penalty>},
    Setter{"n-best", option<&T::n_best>},
    Setter{"temperature", option<&T::temperatures>},
    Setter{"seed", option<&T::seed>},
    Setter{"compression-ratio-threshold", option<&T::compression_ratio_threshold>},
    Setter{"logprob-threshold", option<&T::logprob_threshold>},
    Setter{"no-speech-threshold", option<&T::no_speech_threshold>},
    Setter{"condition-on-previous-text", option<&T::condition_on_previous_text>},
    Setter{"initial-prompt", option<&T::initial_prompt>},
    Setter{"carry-initial-prompt", option<&T::carry_initial_prompt>},
    Setter{"prefix", option<&T::prefix>},
    Setter{"timestamps", option<&T::timestamps>},
    Setter{"word-timestamps", option<&T::word_timestamps>},
    Setter{"max-new-tokens", option<&T::max_new_tokens>},
    Setter{"vad", vad<&VadOptions::enabled>},
    Setter{"vad-threshold", vad<&VadOptions::threshold>},
    Setter{"decode", ctc<&CtcOptions::decode>},
    Setter{"chunk-size", ctc<&CtcOptions::chunk_size>},
    Setter{"num-left-chunks", ctc<&CtcOptions::num_left_chunks>},
    Setter{"ctc-weight", ctc<&CtcOptions::ctc_weight>},
    Setter{"reverse-weight", ctc<&CtcOptions::reverse_weight>},
    Setter{"hotword", ctc<&CtcOptions::hotwords>},
};

}  // namespace

Status set_option(NamedOptions& options, std::string_view name, std::string_view value) {
  std::string spelled(name);
  std::replace(spelled.begin(), spelled.end(), '_', '-');
  for (const auto& setter : kSetters) {
    if (setter.name != spelled) continue;
    if (setter.set(options, value)) return {};
    return unexpected(ErrorCode::invalid_argument,
                      "'" + std::string(value) + "' is not a value of this option", spelled);
  }
  return unexpected(ErrorCode::invalid_argument, "unknown option", std::string(name));
}

}  // namespace oasr
