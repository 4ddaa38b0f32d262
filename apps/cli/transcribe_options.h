// The options of `oasr transcribe`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "oasr/options.h"
#include "oasr/recognizer.h"
#include "oasr/result.h"
#include "oasr/streaming.h"

namespace CLI {
class App;
}

namespace oasr::cli {

struct TranscribeArguments {
  // inputs and outputs
  std::vector<std::string> inputs, formats;
  std::string manifest, shard, output_dir, output_file;
  bool recursive = false, skip_existing = false;
  bool quiet = false, verbose = false, progress = false;

  // how the audio is read
  AudioInput audio;

  // the model
  EngineConfig engine;

  // decoding, before finish_options()
  TranscribeOptions options;
  bool translate = false, no_fallback = false;
  std::vector<double> temperatures;
  std::optional<double> temperature_increment = 0.2;
  double offset_ms = 0, duration_ms = 0;
  std::string hotwords_file;

  bool streams = false;  // --streaming
  StreamingOptions streaming;
  bool endpoints = true;
};

// Declares every option; the values land in `arguments`, which must outlive the parse.
void add_transcribe_options(CLI::App& command, TranscribeArguments& arguments);

// Only those of how the model runs and decodes.
void add_decoding_options(CLI::App& command, TranscribeArguments& arguments);

// Joins the options that depend on each other: temperatures and fallback, offset and duration,
// --translate and --task. An invalid_argument error names what contradicts.
Status finish_options(TranscribeArguments& arguments);

}  // namespace oasr::cli
