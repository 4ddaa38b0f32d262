#include "cli/transcribe_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "cli/model_options.h"
#include "oasr/models.h"

namespace oasr::cli {
namespace {

constexpr const char* kInputs = "Inputs and outputs";
constexpr const char* kModel = "Model";
constexpr const char* kText = "Language and text";
constexpr const char* kSearch = "Search";
constexpr const char* kTimes = "Times";
constexpr const char* kSilence = "Silence and voice activity";
constexpr const char* kCtc = "CTC models (WeNet)";
constexpr const char* kStreaming = "Streaming (CTC models)";

constexpr double kSmallestIncrement = 0.01;  // of the temperature: at most 100 tries of a window

bool is_none(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text == "none" || text == "off";
}

// A number, or None as in openai-whisper's command line.
void add_optional_number(CLI::App& command, const std::string& name, std::optional<double>& target,
                         const std::string& what, const char* group) {
  command
      .add_option_function<std::string>(
          name,
          [&target, name](const std::string& text) {
            double value = 0;
            if (is_none(text)) {
              target.reset();
            } else if (CLI::detail::lexical_cast(text, value) && std::isfinite(value)) {
              target = value;
            } else {
              throw CLI::ValidationError(name, "'" + text + "' is neither a number nor None");
            }
          },
          what)
      ->type_name("NUMBER|None")
      ->group(group);
}

void add_inputs(CLI::App& command, TranscribeArguments& a) {
  command.add_option("inputs", a.inputs, "Audio or video files, folders (with --recursive), or -")
      ->type_name("AUDIO");
  command.add_flag("-r,--recursive", a.recursive, "Folders: every audio file below them")
      ->group(kInputs);
  command.add_option("--manifest", a.manifest,
                     "JSON Lines: {\"audio\": path, \"id\": name}; paths relative to the file")
      ->type_name("FILE")->group(kInputs);
  command.add_option("--shard", a.shard, "Only part i of N of the inputs (from 1)")
      ->type_name("i/N")->group(kInputs);
  command.add_flag("--skip-existing", a.skip_existing, "Skip inputs whose output files are there")
      ->group(kInputs);
  command.add_option("-o,--output-dir", a.output_dir, "Write files here, not to standard output")
      ->type_name("DIR")->group(kInputs);
  command.add_option("--output-file", a.output_file, "Write NAME.txt, … (one input)")
      ->type_name("NAME")->group(kInputs);
  command.add_option("-f,--output-format", a.formats,
                     "txt, json, srt, vtt, tsv, lrc, all; several with commas [txt]")
      ->type_name("FORMAT")->delimiter(',')->allow_extra_args(false)->group(kInputs)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--channel", a.audio.channel, "One channel (from 0) instead of their mean")
      ->group(kInputs);
  command.add_option("--raw", a.audio.raw_encoding,
                     "The input is raw PCM: s16le, s32le, f32le, u8, mulaw, alaw, …")
      ->type_name("ENCODING")->group(kInputs);
  command.add_option("--raw-rate", a.audio.raw_sample_rate, "Hz of raw PCM")
      ->capture_default_str()->group(kInputs);
  command.add_option("--raw-channels", a.audio.raw_channels, "Channels of raw PCM")
      ->capture_default_str()->group(kInputs);
  command.add_flag("-q,--quiet,!--no-quiet", a.quiet, "No messages but errors")->group(kInputs);
  command.add_flag("-v,--verbose,!--no-verbose", a.verbose, "What is loaded, and where time goes")
      ->group(kInputs);
  command.add_flag("--progress,!--no-progress", a.progress,
                   "Progress also when standard error is no terminal")->group(kInputs);
}

void add_model(CLI::App& command, TranscribeArguments& a) {
  a.engine.model = default_model();
  command.add_option("-m,--model", a.engine.model,
                     "Path, or a name of the catalogue (oasr pull --list)")
      ->capture_default_str()->group(kModel);
}

void add_engine(CLI::App& command, TranscribeArguments& a) {
  command.add_option("--dtype", a.engine.dtype, "Weights: auto, float32, float16, bfloat16")
      ->capture_default_str()->group(kModel);
  add_quantization_options(command, a.engine.quantization, a.engine.quantization_options, kModel);
  add_device_options(command, a.engine, kModel);
  command.add_option("-t,--threads", a.engine.threads, "0: what the cgroup quota allows")
      ->capture_default_str()->group(kModel);
  command.add_option("--batch-size", a.engine.batch_size, "Inputs decoded together")
      ->capture_default_str()->group(kModel);
}

void add_text(CLI::App& command, TranscribeArguments& a) {
  auto& o = a.options;
  command.add_option_function<std::string>(
             "-l,--language",
             [&o](const std::string& text) { o.language = is_none(text) ? "auto" : text; },
             "Code or English name; auto detects [auto]")
      ->type_name("TEXT")->group(kText);
  command.add_option("--task", o.task, "transcribe, or translate (to English)")
      ->capture_default_str()->group(kText);
  command.add_flag("--translate,!--no-translate", a.translate, "--task translate")->group(kText);
  command.add_option("--initial-prompt", o.initial_prompt, "Text that comes before the first words")
      ->group(kText);
  command.add_flag("--carry-initial-prompt,!--no-carry-initial-prompt", o.carry_initial_prompt,
                   "Put the initial prompt before every window")->group(kText);
  command.add_option("--prefix", o.prefix, "Forced beginning of the text")->group(kText);
  command.add_flag("--condition-on-previous-text,!--no-condition-on-previous-text",
                   o.condition_on_previous_text,
                   "Windows see the text before them [on]")->group(kText);
  command.add_flag("--suppress-blank,!--no-suppress-blank", o.suppress_blank,
                   "No blank at the start [on]")->group(kText);
  command.add_option_function<std::string>(
             "--suppress-tokens",
             [&o](const std::string& text) {
               o.suppress_tokens.clear();
               for (const auto& word : CLI::detail::split(text, ',')) {
                 std::int32_t id = 0;
                 if (word.empty()) continue;
                 if (!CLI::detail::lexical_cast(word, id)) {
                   throw CLI::ValidationError("--suppress-tokens", "'" + word + "' is no token id");
                 }
                 o.suppress_tokens.push_back(id);
               }
             },
             "Token ids with commas; -1: the checkpoint's set; empty: none [-1]")
      ->type_name("IDS")->group(kText);
}

void add_search(CLI::App& command, TranscribeArguments& a) {
  auto& o = a.options;
  const auto width = [](auto& target, const char* name) {
    return [&target, name](const std::string& text) {
      int value = 1;
      if (!is_none(text) && (!CLI::detail::lexical_cast(text, value) || value < 1)) {
        throw CLI::ValidationError(name, "'" + text + "' is not a number from 1");
      }
      target = value;
    };
  };
  command.add_option_function<std::string>("--beam-size", width(o.beam_size, "--beam-size"),
                                           "Beams (of Whisper at temperature 0); 1: greedy [Whisper 1, CTC models 10]")
      ->type_name("INT")->group(kSearch);
  command.add_option_function<std::string>("--best-of", width(o.best_of, "--best-of"),
                                           "Samples at temperatures above 0 [5]")
      ->type_name("INT")->group(kSearch);
  command.add_option_function<std::string>(
             "--patience",
             [&o](const std::string& text) {
               if (!is_none(text) && !CLI::detail::lexical_cast(text, o.patience)) {
                 throw CLI::ValidationError("--patience", "'" + text + "' is not a number");
               }
             },
             "Beam search goes on until beam size times this are finished [1]")
      ->type_name("NUMBER|None")->group(kSearch);
  add_optional_number(command, "--length-penalty", o.length_penalty,
                      "Google NMT's alpha, 0 to 1; None: mean by length [None]", kSearch);
  command.add_option("--n-best", o.n_best, "Alternatives of a short clip")
      ->capture_default_str()->group(kSearch);
  command.add_option("--temperature", a.temperatures, "One, or several with commas in turn [0]")
      ->delimiter(',')->allow_extra_args(false)->group(kSearch);
  add_optional_number(command, "--temperature-increment-on-fallback", a.temperature_increment,
                      "Step to 1.0 when a window fails its checks; None: no fallback [0.2]",
                      kSearch);
  command.add_flag("--no-fallback", a.no_fallback, "Only the first temperature")->group(kSearch);
  command.add_option_function<std::string>(
             "--seed",
             [&o](const std::string& text) {
               const char* end = text.data() + text.size();
               const auto [rest, failed] = std::from_chars(text.data(), end, o.seed);
               if (failed != std::errc() || rest != end) {
                 throw CLI::ValidationError("--seed", "'" + text + "' is not a number from 0 to 2^64 - 1");
               }
             },
             "Of sampling: the same seed gives the same text [0]")
      ->type_name("UINT")->group(kSearch);
  command.add_option("--max-new-tokens", o.max_new_tokens, "Of a window; 0: the model's limit")
      ->capture_default_str()->group(kSearch);
  add_optional_number(command, "--compression-ratio-threshold", o.compression_ratio_threshold,
                      "Fallback when the text repeats more [2.4]", kSearch);
  add_optional_number(command, "--logprob-threshold", o.logprob_threshold,
                      "Fallback when the mean log-probability is less [-1.0]", kSearch);
  add_optional_number(command, "--no-speech-threshold", o.no_speech_threshold,
                      "A window is silent when its no-speech probability is more [0.6]", kSearch);
}

void add_times(CLI::App& command, TranscribeArguments& a) {
  auto& o = a.options;
  command.add_flag("--timestamps,!--no-timestamps", o.timestamps,
                   "Segments with times; --no-timestamps: text only [on]")->group(kTimes);
  command.add_flag("--word-timestamps,!--no-word-timestamps", o.word_timestamps,
                   "Times of words")->group(kTimes);
  command.add_option("--max-initial-timestamp", o.max_initial_timestamp,
                     "Seconds; the first segment starts no later")
      ->capture_default_str()->group(kTimes);
  command.add_option("--prepend-punctuations", o.prepend_punctuations,
                     "Marks that belong to the word after them")->group(kTimes);
  command.add_option("--append-punctuations", o.append_punctuations,
                     "Marks that belong to the word before them")->group(kTimes);
  command.add_option("--clip-timestamps", o.clip_timestamps,
                     "Only these parts: start,end,start,… in seconds")
      ->delimiter(',')->allow_extra_args(false)->group(kTimes);
  command.add_option("--offset-t", a.offset_ms, "Start here, ms")->group(kTimes);
  command.add_option("-d,--duration", a.duration_ms, "Stop after this much, ms; 0: at the end")
      ->group(kTimes);
}

void add_silence(CLI::App& command, TranscribeArguments& a) {
  auto& o = a.options;
  command.add_flag("--vad,!--no-vad", o.vad.enabled, "Voice activity detection before the model")
      ->group(kSilence);
  command.add_option("--vad-threshold", o.vad.threshold, "Speech above this probability")
      ->capture_default_str()->group(kSilence);
  command.add_option("--vad-min-speech-ms", o.vad.min_speech_ms, "Shorter speech is dropped")
      ->capture_default_str()->group(kSilence);
  command.add_option("--vad-max-speech-s", o.vad.max_speech_s, "Longer speech is split; 0: never")
      ->capture_default_str()->group(kSilence);
  command.add_option("--vad-min-silence-ms", o.vad.min_silence_ms, "Shorter silence joins")
      ->capture_default_str()->group(kSilence);
  command.add_option("--vad-speech-pad-ms", o.vad.speech_pad_ms, "Kept around speech")
      ->capture_default_str()->group(kSilence);
  add_optional_number(command, "--silence-dbfs", o.silence_dbfs,
                      "Windows below this level, and steady sounds without speech, are not decoded; None: all are [-60]", kSilence);
  add_optional_number(command, "--hallucination-silence-threshold",
                      o.hallucination_silence_threshold,
                      "Seconds of silence around doubtful text to skip; with --word-timestamps",
                      kSilence);
}

// "TEXT" or "TEXT:WEIGHT".
Hotword hotword(const std::string& text) {
  Hotword word{.text = text};
  const auto colon = text.rfind(':');
  double weight = 0;
  if (colon != std::string::npos && CLI::detail::lexical_cast(text.substr(colon + 1), weight)) {
    word = {.text = text.substr(0, colon), .weight = weight};
  }
  return word;
}

void add_ctc(CLI::App& command, TranscribeArguments& a) {
  auto& o = a.options.ctc;
  command.add_option("--decode", o.decode,
                     "ctc_greedy_search, ctc_prefix_beam_search, attention_rescoring, attention, joint "
                     "[attention_rescoring]")
      ->type_name("MODE")->group(kCtc);
  command.add_option("--chunk-size", o.chunk_size,
                     "Encoder frames that are seen together; 0: the whole utterance [0; 16 with --streaming]")
      ->type_name("INT")->group(kCtc);
  command.add_option("--num-left-chunks", o.num_left_chunks, "Chunks before its own that a frame sees; -1: all")
      ->capture_default_str()->group(kCtc);
  command.add_option("--ctc-weight", o.ctc_weight, "Of CTC beside attention [rescoring 0.5, joint 0.3]")
      ->type_name("NUMBER")->group(kCtc);
  command.add_option("--reverse-weight", o.reverse_weight, "Of the right-to-left decoder [as trained]")
      ->type_name("NUMBER")->group(kCtc);
  command.add_option_function<std::vector<std::string>>(
             "--hotword",
             [&o](const std::vector<std::string>& words) {
               for (const std::string& word : words) o.hotwords.push_back(hotword(word));
             },
             "A phrase to prefer, with a weight a token [3]; again for more")
      ->type_name("TEXT[:WEIGHT]")->allow_extra_args(false)->group(kCtc)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--hotwords-file", a.hotwords_file, "Phrases, one a line, as for --hotword")
      ->type_name("FILE")->group(kCtc);
}

void add_streaming(CLI::App& command, TranscribeArguments& a) {
  auto& rules = a.streaming.endpoints;
  command.add_flag("--streaming,!--no-streaming", a.streams,
                   "Text while it is spoken: on a terminal redrawn, in a pipe a JSON event a line")
      ->group(kStreaming);
  command.add_flag("--partial-results,!--no-partial-results", a.streaming.partial_results,
                   "Also the text of an utterance that goes on [on]")->group(kStreaming);
  command.add_flag("--endpoints,!--no-endpoints", a.endpoints,
                   "The rules below end utterances; else only the end of the audio does [on]")->group(kStreaming);
  command.add_option("--rule1-min-trailing-silence", rules[0].trailing_silence,
                     "Seconds of silence that end an utterance")->capture_default_str()->group(kStreaming);
  command.add_option("--rule2-min-trailing-silence", rules[1].trailing_silence,
                     "Seconds of silence after speech that end an utterance")->capture_default_str()->group(kStreaming);
  command.add_option("--rule3-min-utterance-length", rules[2].utterance_length,
                     "Seconds after which an utterance ends")->capture_default_str()->group(kStreaming);
}

// What was asked of a stream without asking for one.
Status check_no_streaming(const TranscribeArguments& a) {
  const StreamingOptions plain;
  const char* option = nullptr;
  if (!a.endpoints) option = "--no-endpoints";
  if (!a.streaming.partial_results) option = "--no-partial-results";
  if (a.streaming.endpoints[0].trailing_silence != plain.endpoints[0].trailing_silence) {
    option = "--rule1-min-trailing-silence";
  }
  if (a.streaming.endpoints[1].trailing_silence != plain.endpoints[1].trailing_silence) {
    option = "--rule2-min-trailing-silence";
  }
  if (a.streaming.endpoints[2].utterance_length != plain.endpoints[2].utterance_length) {
    option = "--rule3-min-utterance-length";
  }
  if (option == nullptr) return {};
  return unexpected(ErrorCode::invalid_argument, "is an option of a stream", option,
                    "add --streaming, or leave it out");
}

// Options that a stream does not have.
Status check_streaming(TranscribeArguments& a) {
  const auto refuse = [](const char* option, const char* what) {
    return unexpected(ErrorCode::invalid_argument, std::string("does not go with --streaming: ") + what, option);
  };
  if (!a.streams) return check_no_streaming(a);
  if (!a.endpoints) a.streaming.endpoints.clear();
  if (a.options.ctc.chunk_size == 0) a.options.ctc.chunk_size = kStreamingChunkSize;
  if (!a.output_dir.empty()) return refuse("--output-dir", "a stream goes to standard output");
  if (!a.output_file.empty()) return refuse("--output-file", "a stream goes to standard output");
  if (a.inputs.size() > 1) return refuse("several inputs", "it takes one recording, or - for a pipe");
  if (!a.manifest.empty()) return refuse("--manifest", "it takes one recording, or - for a pipe");
  if (a.engine.batch_size != 1) return refuse("--batch-size", "there is one recording");
  if (a.skip_existing) return refuse("--skip-existing", "there is one recording");
  if (!a.shard.empty()) return refuse("--shard", "there is one recording");
  if (a.recursive) return refuse("--recursive", "there is one recording");
  return {};
}

Status read_hotwords(TranscribeArguments& a) {
  if (a.hotwords_file.empty()) return {};
  std::error_code ignored;
  if (std::filesystem::is_directory(a.hotwords_file, ignored)) {
    return unexpected(ErrorCode::invalid_argument, "is a folder", a.hotwords_file, "--hotwords-file takes a text file");
  }
  std::ifstream file(a.hotwords_file);
  if (!file) return unexpected(ErrorCode::not_found, "can not be read", a.hotwords_file);
  for (std::string line; std::getline(file, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty()) a.options.ctc.hotwords.push_back(hotword(line));
  }
  return {};
}

Unexpected contradicts(std::string what, std::string where) {
  return unexpected(ErrorCode::invalid_argument, std::move(what), std::move(where));
}

Status finish_temperatures(TranscribeArguments& a) {
  const double first = a.temperatures.empty() ? 0.0 : a.temperatures.front();
  if (!(first >= 0 && first <= 1)) return contradicts("must be from 0 to 1", "--temperature");
  if (a.temperatures.empty() && a.temperature_increment == 0.2) {
    // As the library has them.
  } else if (a.temperatures.size() > 1) {
    a.options.temperatures = a.temperatures;
  } else {
    a.options.temperatures = {first};
    const double step = a.temperature_increment.value_or(0);
    if (step < 0 || (step > 0 && step < kSmallestIncrement)) {
      return contradicts("must be 0 or at least 0.01", "--temperature-increment-on-fallback");
    }
    for (int i = 1; step > 0 && first + i * step <= 1.0 + 1e-6; ++i) {
      a.options.temperatures.push_back(first + i * step);
    }
  }
  if (a.no_fallback) a.options.temperatures.resize(1);
  return {};
}

Status finish_clip(TranscribeArguments& a) {
  if (a.offset_ms == 0 && a.duration_ms == 0) return {};
  if (a.offset_ms < 0 || a.duration_ms < 0) return contradicts("must not be negative", "--offset-t");
  if (!a.options.clip_timestamps.empty()) {
    return contradicts("does not go with --offset-t and --duration", "--clip-timestamps");
  }
  a.options.clip_timestamps = {a.offset_ms / 1000};
  if (a.duration_ms > 0) {
    a.options.clip_timestamps.push_back((a.offset_ms + a.duration_ms) / 1000);
  }
  return {};
}

}  // namespace

void add_transcribe_options(CLI::App& command, TranscribeArguments& arguments) {
  add_inputs(command, arguments);
  add_model(command, arguments);
  add_decoding_options(command, arguments);
  add_streaming(command, arguments);
}

void add_decoding_options(CLI::App& command, TranscribeArguments& arguments) {
  add_engine(command, arguments);
  add_text(command, arguments);
  add_search(command, arguments);
  add_times(command, arguments);
  add_silence(command, arguments);
  add_ctc(command, arguments);
}

Status finish_options(TranscribeArguments& arguments) {
  if (arguments.translate) arguments.options.task = "translate";
  if (auto good = finish_temperatures(arguments); !good) return good;
  if (auto good = read_hotwords(arguments); !good) return good;
  if (auto good = check_streaming(arguments); !good) return good;
  if (arguments.options.hallucination_silence_threshold && !arguments.options.word_timestamps) {
    return contradicts("needs --word-timestamps", "--hallucination-silence-threshold");
  }
  if (arguments.quiet && arguments.verbose) return contradicts("does not go with --verbose", "--quiet");
  return finish_clip(arguments);
}

}  // namespace oasr::cli
