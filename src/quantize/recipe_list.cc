// Recipes and algorithms, explained for the terminal.
#include <fmt/format.h>

#include "quantize/recipe_table.h"
#include "quantize/report_parts.h"

namespace oasr::quantize {
namespace {

constexpr std::string_view kFile = R"(A recipe of your own is a YAML file, --recipe mine.yaml:

  name: mine
  scheme: int8_w8a8
  algorithms:
    - smoothquant: {alpha: search}
    - static_inputs: {observer: minmax}
    - rtn
  ignore: [encoder.encoders.0.*]          # optional
  module_types: [linear, pointwise_conv]  # optional

--option ALGORITHM.OPTION=VALUE sets an option of any recipe that runs the algorithm; --alpha X is
smoothquant.alpha=X. Where convolutions are asked for, static_conv_inputs runs with every recipe.
)";

std::string recipe_text(const RecipeRow& row) {
  const auto scheme = quant::find_scheme(row.scheme);
  auto text = fmt::format("  {}: {}{}\n", row.name, row.what, scheme ? "" : " (not served)");
  text += "    " + wrapped(row.explanation, 4) + "\n";
  if (!scheme) text += "    " + wrapped(scheme.error().what, 4) + "\n";
  return text + fmt::format("    scheme {}; algorithms {}\n\n", row.scheme,
                            fmt::join(row.algorithms, ", "));
}

std::string algorithm_text(const Algorithm& algorithm) {
  auto text = fmt::format("  {:<20}{}\n", algorithm.name, algorithm.what);
  for (const auto& option : algorithm.options) {
    const auto line = fmt::format("{}={} ({}): {}", option.name, option.initial,
                                  values_text(option), option.what);
    text += fmt::format("{:24}{}\n", "", wrapped(line, 26));
  }
  return text;
}

}  // namespace

std::string list_text() {
  std::string text = "Recipes:\n\n";
  for (const auto& row : recipe_rows()) text += recipe_text(row);
  text += "Algorithms, in the order in which every recipe runs its own, and their options:\n\n";
  for (const auto& algorithm : algorithms()) text += algorithm_text(algorithm);
  return text + "\n" + std::string(kFile);
}

}  // namespace oasr::quantize
