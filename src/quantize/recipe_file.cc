// A recipe as YAML.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/fs.h"
#include "base/glob.h"
#include "base/json.h"
#include "checkpoint/yaml_document.h"
#include "quantize/recipe_table.h"

namespace oasr::quantize {
namespace {

constexpr std::size_t kLargestFile = 1 << 20;
constexpr std::array<std::string_view, 5> kKeys = {"name", "scheme", "algorithms", "ignore", "module_types"};
constexpr std::array<std::string_view, 3> kRequired = {"name", "scheme", "algorithms"};

// A value of the file with its place, for messages.
struct Node {
  const Json& value;
  std::string file;
  std::string place;  // "algorithms[1].static_inputs"; empty: the whole file

  Unexpected bad(std::string what, std::string remedy = {}) const {
    return unexpected(ErrorCode::invalid_argument, std::move(what),
                      place.empty() ? file : file + ": " + place, std::move(remedy));
  }
  Unexpected bad(const Error& error) const { return bad(error.what, error.remedy); }

  Node member(std::string_view key) const {
    return {value.find(key).value(), file,
            place.empty() ? std::string(key) : fmt::format("{}.{}", place, key)};
  }
  Node element(std::size_t i) const { return {value[i], file, fmt::format("{}[{}]", place, i)}; }

  Result<std::string> text() const {
    if (!value.is_string()) return bad("this is not a text");
    auto text = value.get<std::string>();
    if (text.empty()) return bad("this is empty");
    return text;
  }
  Result<std::vector<std::string>> texts() const {
    if (!value.is_array()) return bad("this is not a list", "write [A, B]");
    std::vector<std::string> all;
    for (std::size_t i = 0; i < value.size(); ++i) {
      auto text = TRY(element(i).text());
      all.push_back(std::move(text));
    }
    return all;
  }
  // A value of an option: a text or a number.
  Result<std::string> scalar() const {
    if (value.is_number()) return value.dump();
    return text();
  }
};

Status check_keys(const Node& root) {
  if (!root.value.is_object()) return root.bad("a recipe is a mapping", "write name: …, scheme: …");
  for (const auto& [key, value] : root.value.items()) {
    if (std::ranges::find(kKeys, key) != kKeys.end()) continue;
    return root.bad(fmt::format("'{}' is not a key of a recipe", key),
                    fmt::format("{}keys: {}", did_you_mean(key, kKeys), fmt::join(kKeys, ", ")));
  }
  for (const auto key : kRequired) {
    if (!root.value.contains(key)) return root.bad(fmt::format("the key '{}' is missing", key));
  }
  return {};
}

// The name is what a checkpoint says of its origin, so that of another recipe would mislead.
Result<std::string> own_name(const Node& node) {
  auto name = TRY(node.text());
  if (std::ranges::find(recipe_rows(), name, &RecipeRow::name) == recipe_rows().end()) return name;
  return node.bad(fmt::format("'{}' is the name of another recipe", name), "choose another name");
}

// "rtn", or {smoothquant: {alpha: 0.5}}.
Result<Step> read_step(const Node& node) {
  const bool has_options = node.value.is_object() && node.value.size() == 1;
  if (!has_options && !node.value.is_string()) {
    return node.bad("this is not an algorithm", "write NAME, or NAME: {OPTION: VALUE}");
  }
  const std::string name = has_options ? node.value.begin().key() : node.value.get<std::string>();
  const auto algorithm = known_algorithm(name);
  if (!algorithm) return node.bad(algorithm.error());
  auto step = default_step(**algorithm);
  if (!has_options) return step;
  const auto options = node.member(name);
  if (!options.value.is_object()) {
    return options.bad("this is not a mapping of options", "write {OPTION: VALUE}");
  }
  for (const auto& [key, value] : options.value.items()) {
    const auto option = options.member(key);
    const auto scalar = TRY(option.scalar());
    const auto set = set_option(step, key, scalar);
    if (!set) return option.bad(set.error());
  }
  return step;
}

// Each algorithm once, in the order of the table, rtn last.
Result<std::vector<Step>> read_steps(const Node& node) {
  if (!node.value.is_array()) return node.bad("this is not a list of algorithms");
  std::vector<std::string_view> order;
  for (const auto& algorithm : algorithms()) order.push_back(algorithm.name);
  auto left = order.begin();  // the algorithms that may come still
  std::vector<Step> steps;
  for (std::size_t i = 0; i < node.value.size(); ++i) {
    auto step = TRY(read_step(node.element(i)));
    const auto found = std::find(left, order.end(), step.algorithm);
    if (found == order.end()) {
      const bool again = std::ranges::find(steps, step.algorithm, &Step::algorithm) != steps.end();
      return node.element(i).bad(
          again ? step.algorithm + " comes twice"
                : fmt::format("{} comes before {}", step.algorithm, steps.back().algorithm),
          fmt::format("the order is {}", fmt::join(order, ", ")));
    }
    left = found + 1;
    steps.push_back(std::move(step));
  }
  if (steps.empty() || steps.back().algorithm != order.back()) {
    return node.bad(fmt::format("the last algorithm is not {}", order.back()),
                    fmt::format("end the list with {}", order.back()));
  }
  return steps;
}

// A scheme that is served, and whose input scales are computed as inputs come: single layers get static ones
// by static_inputs.
Status check_scheme(const Node& node, const Recipe& recipe) {
  const auto scheme = quant::find_scheme(recipe.scheme);
  if (!scheme) {
    return unexpected(scheme.error().code, scheme.error().what, node.file + ": " + node.place,
                      scheme.error().remedy);
  }
  if ((*scheme)->activations.dynamic) return {};
  return node.bad("'" + recipe.scheme + "' is what static_inputs gives to the layers that it serves",
                  "use int8_w8a8, and static_inputs among the algorithms");
}

// Algorithms that mean something in the scheme only.
Status check_algorithms(const Node& node, const Recipe& recipe) {
  const auto scheme = TRY(quant::find_scheme(recipe.scheme));
  const bool four_bits = scheme->weights.format == quant::NumberFormat::int4;
  struct Rule {
    std::string_view algorithm;
    bool served;
    std::string_view why;
  };
  const Rule rules[] = {
      {"mixed", four_bits, "{} has no scheme of more bits beside it to mix with"},
      {"static_inputs", !four_bits, "{} has no variant with a calibrated input scale"},
      {"clip_search", !four_bits, "{} searches its ranges by itself"},
  };
  for (const Rule& rule : rules) {
    if (rule.served || find_step(recipe, rule.algorithm) == nullptr) continue;
    return node.bad(fmt::format("{} does nothing: {}", rule.algorithm,
                                fmt::format(fmt::runtime(rule.why), recipe.scheme)),
                    "leave it out");
  }
  return {};
}

}  // namespace

Result<Recipe> parse_recipe(std::string_view yaml, const std::string& where) {
  auto document = parse_yaml(yaml, where);
  if (!document) {
    document.error().code = ErrorCode::invalid_argument;
    return unexpected(std::move(document.error()));
  }
  const Node root{*document, where, {}};
  TRY(check_keys(root));
  Recipe recipe;
  recipe.name = TRY(own_name(root.member("name")));
  recipe.scheme = TRY(root.member("scheme").text());
  recipe.steps = TRY(read_steps(root.member("algorithms")));
  TRY(check_scheme(root.member("scheme"), recipe));
  TRY(check_algorithms(root.member("algorithms"), recipe));
  if (root.value.contains("ignore")) recipe.ignore = TRY(root.member("ignore").texts());
  if (root.value.contains("module_types")) {
    const auto node = root.member("module_types");
    recipe.module_types = TRY(node.texts());
    const auto kinds = quant::resolve_kinds(recipe.module_types);
    if (!kinds) return node.bad(kinds.error());
  }
  return recipe;
}

Result<Recipe> read_recipe(const std::string& path) {
  const auto text = TRY(read_text_file(path, kLargestFile));
  return parse_recipe(text, path);
}

}  // namespace oasr::quantize
