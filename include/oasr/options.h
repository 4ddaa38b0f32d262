// Options of loading and of transcription. Values are checked once, when they are used.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace oasr {

struct Segment;

struct EngineConfig {
  std::string model;             // a path, or a name of the catalogue ("base")
  std::string dtype = "auto";    // weights: auto, float32, float16, bfloat16
  // int8 and other quantized arithmetic: a scheme ("int8_w8a8"). Empty: full precision, or what a
  // quantized checkpoint says; naming one of its own schemes changes nothing, another is an error.
  std::string quantization;
  // "ignore=GLOB,…" (layers that stay at full precision), "module_types=linear,…".
  std::vector<std::string> quantization_options;
  // auto (a GPU where there is one that the model runs on), cpu, cuda, cuda:N.
  std::string device = "auto";
  // Of what is not quantized: float32, with the same text on every device; on a GPU also float16 and bfloat16, whose
  // products are much faster and whose text may differ (docs/numerics.md). Of a model that runs on the processor these
  // are refused.
  std::string arithmetic = "float32";
  int threads = 0;               // 0: what the cgroup quota allows; beside a GPU as many again, less one, read ahead
  int batch_size = 1;            // windows of different inputs decoded together
  bool download = true;          // a catalogue name that is not in the cache is pulled
};

// Voice activity detection before the model (Silero).
struct VadOptions {
  bool enabled = false;
  double threshold = 0.5;
  double min_speech_ms = 250;
  double max_speech_s = 0;       // 0: no limit
  double min_silence_ms = 2000;
  double speech_pad_ms = 400;
};

// A word or phrase that CTC search should prefer.
struct Hotword {
  std::string text;              // spelled as the model writes ("OASR" for upper case units)
  double weight = 3.0;           // log-probability that each of its tokens is given; < 0 discourages
};

// Options of models with a CTC head (WeNet's U2 and U2++); for others anything but these values is refused.
struct CtcOptions {
  // ctc_greedy_search, ctc_prefix_beam_search, attention_rescoring, attention, joint. Empty:
  // attention_rescoring, or ctc_prefix_beam_search for a model without attention decoders.
  std::string decode;
  int chunk_size = 0;            // encoder frames that are seen together; 0: the whole utterance
  int num_left_chunks = -1;      // chunks before its own that a frame sees; -1: all
  std::optional<double> ctc_weight;      // beside attention: 0.5 in rescoring, 0.3 in joint decoding
  std::optional<double> reverse_weight;  // of the right-to-left decoder in rescoring; as trained
  std::vector<Hotword> hotwords;         // in prefix beam search and rescoring
};

struct TranscribeOptions {
  std::string language = "auto"; // code or English name; "auto" detects
  std::string task = "transcribe";  // or "translate" (to English)

  // Nothing: the family's own, 1 (greedy) for Whisper, 10 for CTC models.
  std::optional<int> beam_size;
  int best_of = 5;               // samples at a temperature above 0
  double patience = 1.0;
  std::optional<double> length_penalty;      // nothing: by length; else Google NMT's alpha, 0 to 1
  int n_best = 1;
  std::vector<double> temperatures = {0.0, 0.2, 0.4, 0.6, 0.8, 1.0};  // tried in order
  std::uint64_t seed = 0;

  std::optional<double> compression_ratio_threshold = 2.4;
  std::optional<double> logprob_threshold = -1.0;
  std::optional<double> no_speech_threshold = 0.6;
  bool condition_on_previous_text = true;
  std::string initial_prompt;
  bool carry_initial_prompt = false;
  std::string prefix;            // forced start of the first window
  bool suppress_blank = true;
  std::vector<std::int32_t> suppress_tokens = {-1};  // -1: the checkpoint's set
  bool timestamps = true;        // false: <|notimestamps|>
  double max_initial_timestamp = 1.0;
  bool word_timestamps = false;
  std::string prepend_punctuations = "\"'“¿([{-";
  std::string append_punctuations = "\"'.。,，!！?？:：”)]}、";
  std::optional<double> hallucination_silence_threshold;  // seconds; needs word_timestamps
  std::vector<double> clip_timestamps;       // start, end, start, end, … in seconds
  int max_new_tokens = 0;        // 0: the model's limit a window

  // Below this level a window is digital silence or noise floor and is not decoded: dBFS of its
  // loudest 25 ms. A window of steady sound (all of it within 1.5 dB) without speech is not decoded either. One
  // whose text at the first temperature fails the thresholds is skipped, without a try at higher
  // ones, if voice activity detection (Silero) finds no speech in it. Nothing: never skip.
  std::optional<double> silence_dbfs = -60.0;
  // The decode() path of Whisper: pad the samples (not the mel) of a clip of 30 s or less.
  bool single_window = false;

  VadOptions vad;
  CtcOptions ctc;
};

// Called in the thread that runs; `cancelled`, while pipes are read, in others too, beside the rest but one at a time. A cancelled run: Error `cancelled`.
struct Callbacks {
  std::function<void(double seconds_done, double seconds_total)> progress;  // total 0: unknown
  std::function<void(const Segment&)> segment;      // as soon as a segment is final
  std::function<bool()> cancelled;                  // polled; true stops
};

}  // namespace oasr
