// What a run of `oasr quantize` does, as data: a scheme, and algorithms with their options in
// order.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "quant/selection.h"

namespace oasr::quantize {

// An option of an algorithm. Its values are words, and numbers from 0 to 1 where `fraction` says
// so.
struct AlgorithmOption {
  std::string_view name;     // "alpha"
  std::string_view initial;  // the value when nobody gives one
  std::span<const std::string_view> words;
  bool fraction = false;
  std::string_view what;  // one line for help
};

// A row of the table of algorithms.
struct Algorithm {
  std::string_view name;   // "smoothquant"
  std::string_view what;   // one line for help
  bool calibrates = true;  // needs statistics of inputs
  std::span<const AlgorithmOption> options = {};
};

// In the order in which every recipe runs them.
std::span<const Algorithm> algorithms();

struct Step {
  std::string algorithm = {};                       // of the table
  std::map<std::string, std::string> options = {};  // every one that it has: "alpha": "0.5"
  friend bool operator==(const Step&, const Step&) = default;
};

struct Recipe {
  std::string name = {};                       // "smoothquant_w8a8"
  std::string scheme = {};                     // quant::find_scheme
  std::vector<Step> steps = {};                // in the order of the table; the last is rtn
  std::vector<std::string> ignore = {};        // globs over paths, of a file
  std::vector<std::string> module_types = {};  // of a file; empty: the default
};

// The recipe of that name, or in a YAML file (a path with a / or an end of .yaml or .yml):
//   name: mine
//   scheme: int8_w8a8
//   algorithms:
//     - smoothquant: {alpha: search}
//     - static_inputs: {observer: minmax}
//     - rtn
//   ignore: [encoder.encoders.0.*]          # optional
//   module_types: [linear, pointwise_conv]  # optional
// Errors: invalid_argument for a name that is not known (the known ones, and the nearest), and for
// whatever a file has that is not known, twice, missing, of another type or in another order
// (`where` is the place: "mine.yaml: algorithms[1].static_inputs"); not_found, io; unsupported: a
// scheme that is not served.
Result<Recipe> find_recipe(const std::string& name_or_path);

// The text of such a file; `where` names it in errors.
Result<Recipe> parse_recipe(std::string_view yaml, const std::string& where);

// Sets "static_inputs.observer=minmax"; `--alpha X` is "smoothquant.alpha=X". Errors
// (invalid_argument, with what is known): no such algorithm, option or value; an algorithm that the
// recipe does not run.
Status apply_option(Recipe& recipe, std::string_view text);

// Convolutions need static input scales whatever the recipe: adds static_conv_inputs in its place
// if there are such kinds and it is not there. Before apply_option, so that it can be set.
void add_static_conv_inputs(Recipe& recipe, std::span<const quant::QuantKind> kinds);

// The step of an algorithm; null: the recipe does not run it.
const Step* find_step(const Recipe& recipe, std::string_view algorithm);

// The number that an option has; nothing: a word.
std::optional<double> number_of(const Step& step, const std::string& option);

// The alpha of a recipe that runs smoothquant; nothing: it is searched.
std::optional<double> fixed_alpha(const Recipe& recipe);

// Whether a step needs statistics of inputs.
bool needs_calibration(const Recipe& recipe);

// For provenance: "algorithms": "smoothquant, rtn", and every option as used, "smoothquant.alpha":
// "0.5".
std::map<std::string, std::string> options_of(const Recipe& recipe);

// For --list: every recipe, served or not, and every algorithm with its options; 100 columns.
std::string list_text();

}  // namespace oasr::quantize
