// Where results go: standard output, or files with names known before the first is written.
#pragma once

#include <string>
#include <vector>

#include "cli/inputs.h"
#include "oasr/outputs.h"

namespace oasr::cli {

struct OutputSpec {
  std::vector<OutputFormat> formats;  // at least one
  std::string folder;                 // files in it; empty: see file
  // One input's files, without the extension (one of the formats' is left off); empty: stdout.
  std::string file;
};

class OutputPlan {
 public:
  // Checks that the formats fit where they go, and gives every input its own file names. Inputs
  // whose names would meet ("a.wav", "a.mp3") keep their extension ("a.wav.txt"); if they still
  // meet, it is an error that names both. So is an output that is the file of any input.
  static Result<OutputPlan> make(const OutputSpec& spec, const std::vector<Input>& inputs);

  bool to_stdout() const { return spec_.folder.empty() && spec_.file.empty(); }
  const std::vector<OutputFormat>& formats() const { return spec_.formats; }

  // The output file of `input` in `format`.
  std::string path(const Input& input, OutputFormat format) const;

  // Every output file of `input` is there (they appear complete or not at all).
  bool done(const Input& input) const;

  // Whether the files of `inputs` can be written: makes the folder (the one above --output-file) and a
  // file in it for a moment. io errors: that can not be done, a folder has the name of an output, a name
  // is too long.
  Status check_writable(const std::vector<Input>& inputs) const;

  // Writes every file of `input`.
  Status write(const Input& input, const Transcript& transcript, const OutputContext& context) const;

 private:
  explicit OutputPlan(OutputSpec spec) : spec_(std::move(spec)) {}
  Status name_outputs(const std::vector<Input>& inputs);
  Status check_overwriting(const std::vector<Input>& inputs) const;

  OutputSpec spec_;
  std::vector<std::string> full_names_;  // stems that keep their extension, sorted
};

// "txt,json", "all", several times: the formats in the order given, each once.
Result<std::vector<OutputFormat>> parse_output_formats(const std::vector<std::string>& words);

}  // namespace oasr::cli
