// Any checkpoint that oasr reads, written as its own: full precision or quantized. And 4-bit layers for
// others.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "oasr/result.h"

namespace oasr {

struct ConvertOptions {
  std::string dtype = "auto";                     // full-precision weights, as EngineConfig::dtype
  std::string quantization;                       // scheme; empty: as the checkpoint is
  std::vector<std::string> quantization_options;  // as EngineConfig::quantization_options
  // Of 4-bit weights of other toolkits: what their files leave unsaid, "group=128|channel",
  // "zeros=pre_scaled|post_scaled", "order=quads|pairs", "codes=occurring|all", "sum=codes" with commas between;
  // the tensors are held against it.
  std::string w4;
  bool requantize =
      false;  // 4-bit scales that have no exact form are replaced, and the report says at what error
  std::string to = "oasr";  // "qserve": an oasr folder with 4-bit layers as QServe's tensors
  int threads = 0;
  bool download = true;                           // as EngineConfig::download
  std::function<void(double done, double total)> progress;  // bytes written
  std::function<bool()> cancelled;                // polled; true stops, and nothing is left
};

struct ConvertReport {
  std::string path;                // the folder that was written
  std::uint64_t bytes = 0;         // of all its files
  std::uint64_t source_bytes = 0;  // of the files that were read
  std::string summary;             // what is quantized and how, for people
  std::string quantization;        // the same as a JSON object (Recognizer::quantization_info)
};

// Whether `w4` and `to` are spelled right (invalid_argument), before any model is looked for.
Status check_convert_options(const ConvertOptions& options);

// Reads the checkpoint at `model` (a path, or a name of the catalogue) and writes the folder
// `destination`, which must not exist or be empty. It appears complete or not at all, and the same
// input gives the same bytes. Errors: those of Recognizer::load(), io.
Result<ConvertReport> convert_model(const std::string& model, const std::string& destination,
                                    const ConvertOptions& options = {});

}  // namespace oasr
