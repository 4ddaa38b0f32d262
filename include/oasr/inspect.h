// What a checkpoint is, without running it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "oasr/result.h"

namespace oasr {

struct TensorReport {
  std::string name;
  std::string format;                 // as stored: "f16", "q5_0", …
  std::vector<std::int64_t> shape;    // logical
  std::uint64_t bytes = 0;            // stored
};

struct FileReport {
  std::string path;
  std::uint64_t bytes = 0;
  std::string sha256;                 // with InspectOptions::checksums only
};

struct ModelReport {
  std::string path;
  std::string container;              // "huggingface", "openai", "ctranslate2", "ggml", "native"
  std::string architecture;           // "whisper"; empty when it is not known
  std::string size_name;              // "base"; empty when no known size matches
  std::int64_t parameters = 0;        // of the model; if it does not load, of all stored tensors
  std::map<std::string, std::int64_t> formats;            // storage format -> elements
  std::vector<std::pair<std::string, std::string>> dimensions;  // "n_mels" -> "80", as configured
  std::string tokenizer;              // "vocabulary.txt (vocabulary)"; "built in" when there is none
  int vocabulary_size = 0;
  std::vector<std::string> languages; // codes; empty where the checkpoint does not say
  std::vector<FileReport> files;
  std::vector<TensorReport> tensors;  // in name order
  std::map<std::string, std::string> documents;           // configuration texts by name
  std::vector<std::string> notes;     // "weights are stored as q5_0 …"; problems that stop a load
  bool loads = false;                 // the strict load succeeds
  // With InspectOptions::quantization, of a checkpoint that loads: as Recognizer::quantization_summary
  // (with all layers) and quantization_info().
  std::string quantization_summary, quantization_info;
};

struct InspectOptions {
  bool checksums = false;             // SHA-256 of every file
  bool quantization = false;          // what every layer is quantized to
  std::string device = "cpu";         // whose kernels that names: auto, cpu, cuda or cuda:N
};

// Reads the checkpoint at `path` (or a catalogue name in the cache) and describes it. A checkpoint
// that can be read but not loaded is described, with the reason in `notes`.
Result<ModelReport> inspect_model(const std::string& path, const InspectOptions& options = {});

// The report as a JSON object, `indent` spaces a level; tensors only if asked for.
std::string to_json(const ModelReport& report, bool tensors, int indent = 2);

}  // namespace oasr
