// Fuzzes recipe files: of what is accepted, every option can be set again and changes nothing.
#include <cstdlib>

#include "quantize/recipes.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto recipe = oasr::quantize::parse_recipe({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!recipe) return 0;
  const auto steps = recipe->steps;
  for (const auto& [key, value] : options_of(*recipe)) {
    if (key != "algorithms" && !apply_option(*recipe, key + "=" + value)) std::abort();
  }
  if (recipe->steps != steps || steps.back().algorithm != "rtn") std::abort();
  return 0;
}
