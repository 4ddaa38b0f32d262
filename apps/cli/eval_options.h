// The options of `oasr eval`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/transcribe_options.h"
#include "oasr/eval.h"

namespace oasr::cli {

struct EvalArguments {
  // what to measure: one of a model on manifests, two files of texts, two results
  std::string model;
  std::vector<std::string> manifests, score, compare;

  EvalOptions scoring;
  EvalReadOptions read;
  std::string format = "auto", utt2spk, speaker_separator;

  std::string output;  // NAME.json
  bool json = false, restart = false, all_changes = false;

  // how the model runs and decodes
  TranscribeArguments transcribe;
  bool single_window = false;
};

void add_eval_options(CLI::App& command, EvalArguments& arguments);

// Joins the options that depend on each other. An invalid_argument error names what contradicts.
Status finish_eval_options(EvalArguments& arguments);

}  // namespace oasr::cli
