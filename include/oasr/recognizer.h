// The facade: load a model once, transcribe many recordings.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "oasr/options.h"
#include "oasr/result.h"
#include "oasr/transcript.h"

namespace oasr {

// One recording: a file, standard input, or samples in memory.
struct AudioInput {
  std::string path;                // a file, or "-" for standard input
  std::span<const float> samples;  // used when path is empty: mono, borrowed during the call
  int sample_rate = 16000;         // of `samples`, Hz
  std::optional<int> channel;      // one channel of the file (0-based) instead of their mean
  std::string raw_encoding;        // "s16le", "f32le", "mulaw", …: the file is raw PCM
  int raw_sample_rate = 16000;     // of raw PCM, Hz
  int raw_channels = 1;            // of raw PCM
};

// What can be said of options before a model is looked for: names, ranges and contradictions, of `audio`
// only how it is read (channel, raw PCM), and the values of oasr's environment variables. Errors:
// invalid_argument, unsupported (a scheme, an instruction set). load() and transcribe() check again, and
// what depends on the model.
Status check_options(const EngineConfig& engine, const TranscribeOptions& options,
                     const AudioInput& audio);

// What a GPU was given to do.
struct Launches {
  std::int64_t kernels = 0;
  std::int64_t graphs = 0;         // starts of many kernels together, as a CUDA graph
  std::int64_t alone = 0;          // kernels that were started one by one
};

// Where the time went since load(): wall seconds.
struct Timings {
  double load_seconds = 0;
  double encode_seconds = 0;       // encoder and cross-attention keys and values
  std::int64_t windows = 0;        // encoded
  double prompt_seconds = 0;       // decoder calls of more than one token a row
  std::int64_t prompts = 0;
  double step_seconds = 0;         // decoder calls of one token a row
  std::int64_t steps = 0;          // those calls
  std::int64_t step_rows = 0;      // tokens scored in them, all rows
  // CTC models; their encoder is in encode_seconds.
  double feature_seconds = 0;      // on a GPU beside the others, by threads of their own
  double search_seconds = 0;
  double rescore_seconds = 0;      // by attention decoders
  std::int64_t utterances = 0;
  std::int64_t searched_on_gpu = 0;  // of them, by its prefix beam search; the others' searches ran on the processor
  // Of the queue that the model runs in on a GPU; features have one of their own.
  Launches launches;
  Launches encode_launches, prompt_launches, step_launches;  // attention encoder-decoders
};

// The last of the layer times of a GPU: what its kernels between the layers took, a call for every start of kernels.
inline constexpr const char* kBetweenLayers = "(between layers)";

// One layer's share of the time, since measure_layers(true).
struct LayerTime {
  std::string layer;               // "model.encoder.layers.0.fc1"
  std::string scheme;              // "int8_w8a8"; empty: full precision, or no matrix
  std::string kernel;              // "scaled_mm avx512_vnni"; empty: not a matrix
  std::int64_t calls = 0;
  std::int64_t rows = 0;           // of its inputs, all calls
  double seconds = 0;              // wall; on a GPU its own time, up to the next layer's first kernel
  double operations = 0;           // 2 · rows · in · out, those of attention; 0: none that are counted
  std::string operands;            // of the operations: "int8", "float32", "float16"
  double bytes = 0;                // of weights, inputs and outputs, at least; 0: not known
  std::int64_t kernels = 0;        // of a GPU
};

// What one core reaches on this machine with the instructions of a kernel ("scaled_mm avx512_vnni"),
// measured on registers for `seconds`: 10^9 operations a second; 0 for a kernel without such a peak.
double kernel_peak_gops(const std::string& kernel, double seconds = 0.05);

// Not thread-safe: one call at a time. Clones may run side by side: they share the weights.
class Recognizer {
 public:
  // Errors: not_found and network (the model), bad_checkpoint, unsupported, invalid_argument.
  static Result<Recognizer> load(const EngineConfig& config);

  ~Recognizer();
  Recognizer(Recognizer&&) noexcept;
  Recognizer& operator=(Recognizer&&) noexcept;

  // A recognizer of its own threads and decoder state over the same weights.
  Result<Recognizer> clone() const;

  // One recording of any length, in bounded memory. Errors: bad_audio, io, not_found (the audio),
  // invalid_argument (options), cancelled.
  Result<Transcript> transcribe(const AudioInput& audio, const TranscribeOptions& options,
                                const Callbacks& callbacks = {});

  // Many recordings, up to config.batch_size decoded together; `done` is called in input order,
  // once each. One bad recording is an Error of its own and stops nothing. Callbacks::segment is
  // not called when there are several; Callbacks::progress counts the seconds of all.
  void transcribe_batch(std::span<const AudioInput> audio, const TranscribeOptions& options,
                        const std::function<void(std::size_t index, Result<Transcript>)>& done,
                        const Callbacks& callbacks = {});

  // The options as transcribe() uses them: with what the model's family gives to those that are not set.
  TranscribeOptions resolved(const TranscribeOptions& options) const;

  Timings timings() const;

  // Times every layer from now on (a few percent slower), or stops. In the order of the first call. On a GPU the
  // kernels of a pass still start together, with marks between the layers that it notes the time of.
  void measure_layers(bool on);
  std::vector<LayerTime> layer_times() const;

  // How every layer is quantized, which kernel it runs and who quantizes its input: a JSON object
  // (docs/quantization.md), and the same for people, with a table of all layers if asked for.
  std::string quantization_info() const;
  std::string quantization_summary(bool layers) const;

  // What is loaded and how it runs, as a JSON object (architecture, dtype, lanes, threads, notes).
  std::string report() const;

 private:
  friend struct LoadedFacade;  // oasr's own
  struct Impl;
  explicit Recognizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace oasr
