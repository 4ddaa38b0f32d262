// The table of recipes, and what reading a recipe from a file shares with it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "quantize/recipes.h"

namespace oasr::quantize {

struct RecipeRow {
  std::string_view name;
  std::string_view what;         // a few words
  std::string_view explanation;  // sentences
  std::string_view scheme;       // known, not always served
  std::span<const std::string_view> algorithms;
};
std::span<const RecipeRow> recipe_rows();

// The values of an option: "0 to 1, or search".
std::string values_text(const AlgorithmOption& option);

Step default_step(const Algorithm& algorithm);

// invalid_argument: there is none of that name.
Result<const Algorithm*> known_algorithm(std::string_view name);

// invalid_argument: the step's algorithm has no such option, or the option no such value.
Status set_option(Step& step, std::string_view key, std::string_view value);

// find_recipe() of a path.
Result<Recipe> read_recipe(const std::string& path);

}  // namespace oasr::quantize
