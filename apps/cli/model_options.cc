#include "cli/model_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

namespace oasr::cli {
namespace {

constexpr const char* kOption = "--quantization-option";
constexpr std::array kKeys = {"ignore=", "module_types="};

// Whether a word is the option, with underscores for dashes too; its value may stand behind a "=".
bool is_option(std::string_view word) {
  const auto same = [](char given, char wanted) {
    return given == wanted || (given == '_' && wanted == '-');
  };
  return word.starts_with("--") &&
         std::ranges::equal(word.substr(0, word.find('=')), std::string_view(kOption), same);
}

bool is_value(std::string_view word) {
  return std::ranges::any_of(kKeys, [&](const char* key) { return word.starts_with(key); });
}

}  // namespace

void add_device_options(CLI::App& command, EngineConfig& engine, const char* group) {
  command.add_option("--device", engine.device,
                     "auto (the first GPU, where there is one that the model runs on), cpu, cuda, cuda:N")
      ->capture_default_str()->group(group);
  command.add_option("--arithmetic", engine.arithmetic,
                     "Of what is not quantized: float32; on a GPU also float16, bfloat16, faster and not the same text")
      ->capture_default_str()->group(group);
}

void add_quantization_options(CLI::App& command, std::string& scheme,
                              std::vector<std::string>& options, const char* group) {
  command.add_option("--quantization", scheme,
                     "Quantize matrices: int8_w8a8, w4a8_g128, w4a8_chn (docs/quantization.md)")
      ->type_name("SCHEME")->group(group);
  command.add_option(kOption, options,
                     "ignore=GLOB,… (layers left at full precision), module_types=linear,…")
      ->type_name("KEY=VALUE")->allow_extra_args(false)->group(group)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

std::vector<std::string> spread_quantization_options(const std::vector<std::string>& arguments) {
  std::vector<std::string> spread;
  bool takes = false;  // the word before is the option, and this one its value
  bool after = false;  // the words since are values of the option
  for (const std::string& word : arguments) {
    if (!takes && after && is_value(word)) spread.emplace_back(kOption);
    const bool option = is_option(word);
    after = option || takes || (after && is_value(word));
    takes = option && word.find('=') == std::string::npos;
    spread.push_back(word);
  }
  return spread;
}

}  // namespace oasr::cli
