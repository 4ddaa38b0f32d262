#include "quantize/recipes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/check.h"
#include "base/glob.h"
#include "quant/layer_rules.h"
#include "quantize/recipe_table.h"

namespace oasr::quantize {
namespace {

constexpr std::array<std::string_view, 4> kObservers = {"mse", "minmax", "percentile", "entropy"};
constexpr std::array<std::string_view, 1> kSearch = {"search"};

constexpr std::array kAlpha = {
    AlgorithmOption{.name = "alpha",
                    .initial = "search",
                    .words = kSearch,
                    .fraction = true,
                    .what = "how much of a channel's range moves from the input to the weights"}};
constexpr std::array kKeyAlpha = {
    AlgorithmOption{.name = "alpha",
                    .initial = "0.5",
                    .words = {},
                    .fraction = true,
                    .what = "how much of a channel's range moves from the keys to the queries"}};
constexpr std::array kObserver = {
    AlgorithmOption{.name = "observer",
                    .initial = "mse",
                    .words = kObservers,
                    .what = "what chooses the greatest value that the scale keeps"}};

constexpr std::array kLimit = {AlgorithmOption{
    .name = "limit",
    .initial = "0.008",
    .words = {},
    .fraction = true,
    .what = "the greatest share of a layer's output (squared) that 4 bits may cost; 1: all layers"}};

constexpr std::array kAlgorithms = {
    Algorithm{.name = "smoothquant",
              .what = "moves outlier channels of inputs into the weights",
              .options = kAlpha},
    Algorithm{.name = "smoothattention",
              .what = "moves outlier channels of attention keys into queries, for 4-bit KV caches",
              .options = kKeyAlpha},
    Algorithm{.name = "static_inputs",
              .what = "one calibrated input scale where the product before can write int8",
              .options = kObserver},
    Algorithm{.name = "static_conv_inputs",
              .what = "one calibrated input scale for every convolution",
              .options = kObserver},
    Algorithm{.name = "mixed",
              .what = "8 bits for layers that lose more than a limit in 4 bits",
              .options = kLimit},
    Algorithm{.name = "clip_search",
              .what = "clips int8 weight rows where that lowers the error on calibrated inputs"},
    Algorithm{.name = "bias_correction",
              .what = "takes the mean error of the rounded weights out of the bias"},
    Algorithm{.name = "rtn", .what = "rounds weights to the nearest code of the scheme", .calibrates = false},
};

constexpr std::array<std::string_view, 1> kRtn = {"rtn"};
constexpr std::array<std::string_view, 2> kSmooth = {"smoothquant", "rtn"};
constexpr std::array<std::string_view, 2> kMixed = {"mixed", "rtn"};
constexpr std::array<std::string_view, 3> kSmoothMixed = {"smoothquant", "mixed", "rtn"};
constexpr std::array<std::string_view, 3> kFused = {"smoothquant", "static_inputs", "rtn"};

constexpr std::array kRecipes = {
    RecipeRow{.name = "int8_w8a8_rtn",
              .what = "int8 without calibration",
              .explanation = "What loading a model with --quantization int8_w8a8 computes, saved: "
                             "weights are rounded to the nearest code, inputs get a scale a token "
                             "as they come. Needs no audio.",
              .scheme = "int8_w8a8",
              .algorithms = kRtn},
    RecipeRow{.name = "smoothquant_w8a8",
              .what = "int8 that keeps the accuracy",
              .explanation = "A few input channels are far larger than the others, and their range "
                             "coarsens the code of all. Calibration finds them; they are scaled "
                             "down, and the weights that read them up, before rounding.",
              .scheme = "int8_w8a8",
              .algorithms = kSmooth},
    RecipeRow{.name = "smoothquant_w8a8_fused",
              .what = "the same, and the fastest",
              .explanation = "As smoothquant_w8a8; the second product of a feed-forward also gets "
                             "one calibrated input scale, so that the first writes its output as "
                             "int8 and no pass of its own quantizes it.",
              .scheme = "int8_w8a8",
              .algorithms = kFused},
    RecipeRow{.name = "w4a8_g128_smooth",
              .what = "4-bit weights, 8-bit products, smoothed",
              .explanation = "Weights in 4 bits with an integer scale for 128 of them, inputs in 8 bits: "
                             "half the bytes of int8. Smoothed; ranges are searched with the importance "
                             "of every input channel; layers that lose too much stay in int8.",
              .scheme = "w4a8_g128",
              .algorithms = kSmoothMixed},
    RecipeRow{.name = "w4a8_g128_rtn",
              .what = "4-bit weights, 8-bit products",
              .explanation = "As w4a8_g128_smooth, without smoothing.",
              .scheme = "w4a8_g128",
              .algorithms = kMixed},
    RecipeRow{.name = "w4a8_chn_rtn",
              .what = "4-bit weights with one scale a channel",
              .explanation = "As w4a8_g128_rtn, with one scale and zero for a whole row: 3 % smaller, and "
                             "coarser.",
              .scheme = "w4a8_chn",
              .algorithms = kMixed},
    RecipeRow{.name = "fp8_w8a8_rtn",
              .what = "fp8 e4m3 without calibration",
              .explanation = "As int8_w8a8_rtn, in fp8.",
              .scheme = "fp8_w8a8",
              .algorithms = kRtn},
    RecipeRow{.name = "smoothquant_fp8_w8a8",
              .what = "fp8 e4m3, smoothed",
              .explanation = "As smoothquant_w8a8, in fp8.",
              .scheme = "fp8_w8a8",
              .algorithms = kSmooth},
    RecipeRow{.name = "smoothquant_fp8_w8a8_fused",
              .what = "fp8 e4m3, smoothed and fused",
              .explanation = "As smoothquant_w8a8_fused, in fp8.",
              .scheme = "fp8_w8a8",
              .algorithms = kFused},
};

Unexpected invalid(std::string what, std::string remedy) {
  return unexpected(ErrorCode::invalid_argument, std::move(what), "option", std::move(remedy));
}

// "algorithms: rtn, …", after the one that was perhaps meant.
template <class Rows>
std::string known(std::string_view given, std::string_view title, const Rows& rows) {
  std::vector<std::string_view> names;
  for (const auto& row : rows) names.push_back(row.name);
  return fmt::format("{}{}: {}", did_you_mean(given, names), title, fmt::join(names, ", "));
}

// How a value is written: "0.50" is 0.5. Nothing: the option does not take it.
std::optional<std::string> canonical(const AlgorithmOption& option, std::string_view value) {
  if (std::ranges::find(option.words, value) != option.words.end()) return std::string(value);
  double number = -1;
  const char* end = value.data() + value.size();
  const auto parsed = std::from_chars(value.data(), end, number);
  if (!option.fraction || parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  if (!(number >= 0 && number <= 1)) return std::nullopt;
  return number == 0 ? "0" : fmt::format("{}", number);
}

std::size_t algorithm_index(std::string_view algorithm) {
  const auto row = std::ranges::find(kAlgorithms, algorithm, &Algorithm::name);
  CHECK(row != kAlgorithms.end(), "a recipe runs an algorithm that there is not");
  return static_cast<std::size_t>(row - kAlgorithms.begin());
}

Recipe recipe_of(const RecipeRow& row) {
  Recipe recipe{.name = std::string(row.name), .scheme = std::string(row.scheme)};
  for (const auto name : row.algorithms) {
    recipe.steps.push_back(default_step(kAlgorithms[algorithm_index(name)]));
  }
  return recipe;
}

bool is_path(std::string_view text) {
  return text.find('/') != text.npos || text.ends_with(".yaml") || text.ends_with(".yml");
}

}  // namespace

std::span<const Algorithm> algorithms() { return kAlgorithms; }
std::span<const RecipeRow> recipe_rows() { return kRecipes; }

std::string values_text(const AlgorithmOption& option) {
  const auto text = fmt::format("{}", fmt::join(option.words, ", "));
  if (!option.fraction) return text;
  return text.empty() ? "0 to 1" : "0 to 1, or " + text;
}

Step default_step(const Algorithm& algorithm) {
  Step step{.algorithm = std::string(algorithm.name)};
  for (const auto& option : algorithm.options) {
    step.options[std::string(option.name)] = option.initial;
  }
  return step;
}

Result<const Algorithm*> known_algorithm(std::string_view name) {
  const auto row = std::ranges::find(kAlgorithms, name, &Algorithm::name);
  if (row != kAlgorithms.end()) return row;
  return invalid(fmt::format("'{}' is not an algorithm", name), known(name, "algorithms", kAlgorithms));
}

Status set_option(Step& step, std::string_view key, std::string_view value) {
  const auto& algorithm = kAlgorithms[algorithm_index(step.algorithm)];
  const auto option = std::ranges::find(algorithm.options, key, &AlgorithmOption::name);
  if (option == algorithm.options.end()) {
    return invalid(fmt::format("{} has no option '{}'", algorithm.name, key),
                   algorithm.options.empty() ? "it has none" : known(key, "its options", algorithm.options));
  }
  const auto written = canonical(*option, value);
  if (!written) {
    return invalid(fmt::format("'{}' is not a value of {}.{}", value, algorithm.name, key),
                   fmt::format("{}values: {}", did_you_mean(value, option->words), values_text(*option)));
  }
  step.options[std::string(key)] = *written;
  return {};
}

Result<Recipe> find_recipe(const std::string& name_or_path) {
  const auto row = std::ranges::find(kRecipes, name_or_path, &RecipeRow::name);
  if (row != kRecipes.end()) {
    const auto scheme = quant::find_scheme(row->scheme);
    if (scheme) return recipe_of(*row);
    return unexpected(scheme.error().code, fmt::format("recipe {}: {}", row->name, scheme.error().what),
                      "recipe", "use an int8 recipe; `oasr quantize --list` explains them");
  }
  if (is_path(name_or_path)) return read_recipe(name_or_path);
  return unexpected(ErrorCode::invalid_argument, fmt::format("'{}' is not a recipe", name_or_path), "recipe",
                    known(name_or_path, "recipes", kRecipes) + "; or the path of a .yaml file");
}

Status apply_option(Recipe& recipe, std::string_view text) {
  const auto equals = text.find('=');
  const auto name = text.substr(0, equals);
  const auto dot = name.find('.');
  if (equals == text.npos || dot == name.npos) {
    return invalid(fmt::format("'{}' is not an option", text), "write ALGORITHM.OPTION=VALUE");
  }
  const Algorithm* algorithm = TRY(known_algorithm(name.substr(0, dot)));
  const auto step = std::ranges::find(recipe.steps, algorithm->name, &Step::algorithm);
  if (step == recipe.steps.end()) {
    return invalid(fmt::format("the recipe {} does not run {}", recipe.name, algorithm->name),
                   fmt::format("it runs {}", options_of(recipe).at("algorithms")));
  }
  return set_option(*step, name.substr(dot + 1), text.substr(equals + 1));
}

void add_static_conv_inputs(Recipe& recipe, std::span<const quant::QuantKind> kinds) {
  constexpr std::string_view kName = "static_conv_inputs";
  if (std::ranges::none_of(kinds, quant::needs_static_input) || find_step(recipe, kName)) return;
  const auto after = std::ranges::find_if(
      recipe.steps, [&](const Step& step) { return algorithm_index(step.algorithm) > algorithm_index(kName); });
  recipe.steps.insert(after, default_step(kAlgorithms[algorithm_index(kName)]));
}

const Step* find_step(const Recipe& recipe, std::string_view algorithm) {
  const auto step = std::ranges::find(recipe.steps, algorithm, &Step::algorithm);
  return step == recipe.steps.end() ? nullptr : &*step;
}

std::optional<double> number_of(const Step& step, const std::string& option) {
  const auto& text = step.options.at(option);
  double number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc()) return std::nullopt;
  return number;
}

std::optional<double> fixed_alpha(const Recipe& recipe) {
  const Step* step = find_step(recipe, "smoothquant");
  CHECK(step != nullptr, "the recipe does not smooth");
  return number_of(*step, "alpha");
}

bool needs_calibration(const Recipe& recipe) {
  return std::ranges::any_of(
      recipe.steps, [](const Step& step) { return kAlgorithms[algorithm_index(step.algorithm)].calibrates; });
}

std::map<std::string, std::string> options_of(const Recipe& recipe) {
  std::map<std::string, std::string> all;
  for (const auto& step : recipe.steps) {
    auto& names = all["algorithms"];
    names += (names.empty() ? "" : ", ") + step.algorithm;
    for (const auto& [key, value] : step.options) all[step.algorithm + "." + key] = value;
  }
  return all;
}

}  // namespace oasr::quantize
