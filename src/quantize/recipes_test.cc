#include "quantize/recipes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "calib/observers.h"
#include "quant/scheme.h"
#include "quantize/recipe_table.h"
#include "testing/paths.h"

namespace oasr::quantize {
namespace {

using quant::QuantKind;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

Recipe recipe(const std::string& name) {
  auto found = find_recipe(name);
  EXPECT_TRUE(found) << found.error().message();
  return std::move(*found);
}

std::vector<std::string> names_of(const Recipe& recipe) {
  std::vector<std::string> names;
  for (const auto& step : recipe.steps) names.push_back(step.algorithm);
  return names;
}

// A file that is right but for one line.
std::string file(const std::string& algorithms, const std::string& rest = {},
                 const std::string& scheme = "int8_w8a8") {
  return "name: mine\nscheme: " + scheme + "\nalgorithms: " + algorithms + "\n" + rest;
}

Error error_of(const std::string& yaml) {
  const auto parsed = parse_recipe(yaml, "mine.yaml");
  EXPECT_FALSE(parsed) << yaml;
  return parsed ? Error{} : parsed.error();
}

TEST(Recipes, NamedOnesRunWhatTheirNamesSay) {
  EXPECT_THAT(names_of(recipe("int8_w8a8_rtn")), ElementsAre("rtn"));
  EXPECT_THAT(names_of(recipe("smoothquant_w8a8")), ElementsAre("smoothquant", "rtn"));
  const auto fused = recipe("smoothquant_w8a8_fused");
  EXPECT_THAT(names_of(fused), ElementsAre("smoothquant", "static_inputs", "rtn"));
  EXPECT_EQ(fused.scheme, "int8_w8a8");
  EXPECT_THAT(options_of(fused),
              ElementsAre(Pair("algorithms", "smoothquant, static_inputs, rtn"),
                          Pair("smoothquant.alpha", "search"), Pair("static_inputs.observer", "mse")));
}

// Every row of the table keeps the rules that a file is held to.
TEST(Recipes, RowsAreWhatAFileCouldSay) {
  for (const auto& row : recipe_rows()) {
    EXPECT_TRUE(quant::known_scheme(row.scheme)) << row.name;
    const std::string scheme(quant::find_scheme(row.scheme) ? row.scheme : "int8_w8a8");
    std::string list;
    for (const auto name : row.algorithms) list += "\n- " + std::string(name);
    const auto parsed = parse_recipe(file(list, {}, scheme), "row");
    ASSERT_TRUE(parsed) << row.name << ": " << parsed.error().message();
  }
}

TEST(Recipes, ThoseOfASchemeThatIsNotServedAreRefusedWithTheReason) {
  for (const auto* name : {"fp8_w8a8_rtn", "smoothquant_fp8_w8a8", "smoothquant_fp8_w8a8_fused"}) {
    const auto refused = find_recipe(name);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
    EXPECT_THAT(refused.error().what,
                AllOf(HasSubstr(name), HasSubstr("no kernel here multiplies fp8")));
  }
}

TEST(Recipes, AnUnknownNameGetsTheNearest) {
  const auto unknown = find_recipe("smoothquant_w8a");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(unknown.error().remedy,
              AllOf(HasSubstr("did you mean smoothquant_w8a8?"), HasSubstr("int8_w8a8_rtn")));
}

TEST(Recipes, OnlyRoundingNeedsNoCalibration) {
  EXPECT_FALSE(needs_calibration(recipe("int8_w8a8_rtn")));
  EXPECT_TRUE(needs_calibration(recipe("smoothquant_w8a8")));
}

TEST(Recipes, ConvolutionsAddTheirStepInItsPlaceOnce) {
  auto fused = recipe("smoothquant_w8a8_fused");
  const std::vector<QuantKind> products = {QuantKind::linear, QuantKind::pointwise_conv};
  add_static_conv_inputs(fused, products);
  EXPECT_THAT(fused.steps, SizeIs(3));
  const std::vector<QuantKind> convolutions = {QuantKind::linear, QuantKind::conv2d};
  add_static_conv_inputs(fused, convolutions);
  add_static_conv_inputs(fused, convolutions);
  EXPECT_THAT(names_of(fused),
              ElementsAre("smoothquant", "static_inputs", "static_conv_inputs", "rtn"));
  auto plain = recipe("int8_w8a8_rtn");
  add_static_conv_inputs(plain, convolutions);
  EXPECT_THAT(names_of(plain), ElementsAre("static_conv_inputs", "rtn"));
  EXPECT_TRUE(needs_calibration(plain));
  EXPECT_TRUE(apply_option(plain, "static_conv_inputs.observer=entropy"));
  EXPECT_EQ(find_step(plain, "static_conv_inputs")->options.at("observer"), "entropy");
}

TEST(RecipeOptions, AreKeptInOneSpelling) {
  auto fused = recipe("smoothquant_w8a8_fused");
  for (const auto& [given, kept] : {std::pair{"0.50", "0.5"},
                                    {"1", "1"},
                                    {"1.0", "1"},
                                    {"-0", "0"},
                                    {"2e-1", "0.2"},
                                    {"search", "search"}}) {
    ASSERT_TRUE(apply_option(fused, std::string("smoothquant.alpha=") + given)) << given;
    EXPECT_EQ(options_of(fused).at("smoothquant.alpha"), kept);
  }
  EXPECT_EQ(fixed_alpha(fused), std::nullopt);
  ASSERT_TRUE(apply_option(fused, "smoothquant.alpha=0.25"));
  EXPECT_EQ(fixed_alpha(fused), 0.25);
}

TEST(RecipeOptions, WrongOnesAreRefusedByName) {
  struct Case {
    const char* option;
    const char* what;
    const char* remedy;
  };
  for (const auto& [option, what, remedy] : {
           Case{"smoothquant.alpha", "not an option", "ALGORITHM.OPTION=VALUE"},
           Case{"alpha=0.5", "not an option", "ALGORITHM.OPTION=VALUE"},
           Case{"smothquant.alpha=0.5", "'smothquant' is not an algorithm",
                "did you mean smoothquant?"},
           Case{"smoothquant.alhpa=0.5", "smoothquant has no option 'alhpa'", "options: alpha"},
           Case{"rtn.alpha=0.5", "rtn has no option 'alpha'", "it has none"},
           Case{"smoothquant.alpha=1.01", "'1.01' is not a value of smoothquant.alpha",
                "0 to 1, or search"},
           Case{"smoothquant.alpha=-0.1", "'-0.1' is not a value", "0 to 1, or search"},
           Case{"smoothquant.alpha=nan", "'nan' is not a value", "0 to 1, or search"},
           Case{"smoothquant.alpha=0.5x", "'0.5x' is not a value", "0 to 1, or search"},
           Case{"smoothquant.alpha=", "'' is not a value", "0 to 1, or search"},
           Case{"static_inputs.observer=minmx", "'minmx' is not a value", "did you mean minmax?"},
           Case{"static_inputs.observer=0.5", "'0.5' is not a value",
                "mse, minmax, percentile, entropy"},
           Case{"static_conv_inputs.observer=mse",
                "smoothquant_w8a8_fused does not run static_conv_inputs",
                "it runs smoothquant, static_inputs, rtn"},
       }) {
    auto fused = recipe("smoothquant_w8a8_fused");
    const auto applied = apply_option(fused, option);
    ASSERT_FALSE(applied) << option;
    EXPECT_EQ(applied.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(applied.error().what, HasSubstr(what));
    EXPECT_THAT(applied.error().remedy, HasSubstr(remedy));
    EXPECT_EQ(options_of(fused), options_of(recipe("smoothquant_w8a8_fused")));
  }
}

TEST(RecipeFile, IsReadAsWritten) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "mine.yaml";
  std::ofstream(path) << file(
      "\n- smoothquant: {alpha: search}\n- static_inputs: {observer: minmax}\n- clip_search\n"
      "- bias_correction\n- rtn",
      "ignore: [a.*, b]\nmodule_types: [linear, conv2d]\n");
  const auto mine = recipe(path.string());
  EXPECT_EQ(mine.name, "mine");
  EXPECT_EQ(mine.scheme, "int8_w8a8");
  EXPECT_THAT(mine.ignore, ElementsAre("a.*", "b"));
  EXPECT_THAT(mine.module_types, ElementsAre("linear", "conv2d"));
  EXPECT_THAT(
      options_of(mine),
      UnorderedElementsAre(
          Pair("algorithms", "smoothquant, static_inputs, clip_search, bias_correction, rtn"),
          Pair("smoothquant.alpha", "search"), Pair("static_inputs.observer", "minmax")));
}

TEST(RecipeFile, OptionsThatAreLeftOutHaveTheirDefaults) {
  const auto parsed = parse_recipe(file("[smoothquant, {static_inputs: {}}, rtn]"), "mine.yaml");
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->steps, recipe("smoothquant_w8a8_fused").steps);
}

// No recipe of the table runs it: it is for caches of 4 bits.
TEST(RecipeFile, MaySmoothKeysByAnAlphaOfTheirOwn) {
  const auto mine =
      parse_recipe(file("[smoothquant, smoothattention: {alpha: 0.25}, rtn]"), "mine.yaml").value();
  EXPECT_EQ(number_of(*find_step(mine, "smoothattention"), "alpha"), 0.25);
  EXPECT_TRUE(needs_calibration(mine));
  EXPECT_EQ(parse_recipe(file("[smoothattention, rtn]"), "mine.yaml")->steps[0].options.at("alpha"), "0.5");
  EXPECT_THAT(error_of(file("[smoothattention: {alpha: search}, rtn]")).what,
              HasSubstr("'search' is not a value"));
  for (const auto& row : recipe_rows())
    EXPECT_EQ(std::ranges::find(row.algorithms, "smoothattention"), row.algorithms.end()) << row.name;
}

TEST(RecipeFile, OfAMissingPathIsNotFound) {
  const auto missing = find_recipe("/nowhere/mine.yaml");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
}

TEST(RecipeFile, FaultsNameTheirPlace) {
  struct Case {
    std::string yaml;
    const char* where;
    const char* what;
    const char* remedy;
  };
  const std::vector<Case> cases = {
      {"[1, 2]", "mine.yaml", "a recipe is a mapping", "name"},
      {"a: [", "mine.yaml", "not YAML", ""},
      {"name: a\nname: b", "mine.yaml", "twice", ""},
      {file("[rtn]", "ignroe: [a]"), "mine.yaml", "'ignroe' is not a key", "did you mean ignore?"},
      {"name: mine\nscheme: int8_w8a8", "mine.yaml", "'algorithms' is missing", ""},
      {"name: 5\nscheme: int8_w8a8\nalgorithms: [rtn]", "mine.yaml: name", "not a text", ""},
      {"name: ''\nscheme: int8_w8a8\nalgorithms: [rtn]", "mine.yaml: name", "empty", ""},
      {"name: int8_w8a8_rtn\nscheme: int8_w8a8\nalgorithms: [rtn]", "mine.yaml: name",
       "the name of another recipe", ""},
      {"name: mine\nscheme: int8_w8\nalgorithms: [rtn]", "mine.yaml: scheme", "'int8_w8' is not a scheme",
       "did you mean int8_w8a8?"},
      {"name: mine\nscheme: int8_w8a8_static\nalgorithms: [rtn]", "mine.yaml: scheme",
       "is what static_inputs gives", "use int8_w8a8"},
      {file("rtn"), "mine.yaml: algorithms", "not a list", ""},
      {file("[]"), "mine.yaml: algorithms", "the last algorithm is not rtn", ""},
      {file("[smoothquant]"), "mine.yaml: algorithms", "the last algorithm is not rtn", "end the list"},
      {file("[gptq, rtn]"), "mine.yaml: algorithms[0]", "'gptq' is not an algorithm", "smoothquant, "},
      {file("[5, rtn]"), "mine.yaml: algorithms[0]", "not an algorithm", "NAME"},
      {file("[{smoothquant: {}, rtn: {}}]"), "mine.yaml: algorithms[0]", "not an algorithm", "NAME"},
      {file("[rtn, rtn]"), "mine.yaml: algorithms[1]", "rtn comes twice", ""},
      {file("[static_inputs, smoothquant, rtn]"), "mine.yaml: algorithms[1]",
       "smoothquant comes before static_inputs", "the order is smoothquant, smoothattention, static_inputs"},
      {file("[rtn, bias_correction]"), "mine.yaml: algorithms[1]", "bias_correction comes before rtn", ""},
      {file("[{smoothquant: 0.5}, rtn]"), "mine.yaml: algorithms[0].smoothquant", "not a mapping", ""},
      {file("[{smoothquant: {alfa: 0.5}}, rtn]"), "mine.yaml: algorithms[0].smoothquant.alfa",
       "no option 'alfa'", "its options: alpha"},
      {file("[{smoothquant: {alpha: 2}}, rtn]"), "mine.yaml: algorithms[0].smoothquant.alpha",
       "'2' is not a value", "0 to 1"},
      {file("[{smoothquant: {alpha: true}}, rtn]"), "mine.yaml: algorithms[0].smoothquant.alpha",
       "not a text", ""},
      {file("[rtn]", "ignore: a.*"), "mine.yaml: ignore", "not a list", ""},
      {file("[rtn]", "ignore: [a, 3]"), "mine.yaml: ignore[1]", "not a text", ""},
      {file("[rtn]", "module_types: [linaer]"), "mine.yaml: module_types", "linaer", "linear"},
  };
  for (const auto& [yaml, where, what, remedy] : cases) {
    const auto error = error_of(yaml);
    EXPECT_EQ(error.code, ErrorCode::invalid_argument) << yaml;
    EXPECT_EQ(error.where, where) << yaml;
    EXPECT_THAT(error.what, HasSubstr(what)) << yaml;
    EXPECT_THAT(error.remedy, HasSubstr(remedy)) << yaml;
  }
}

TEST(RecipeFile, OfASchemeThatIsNotServedIsRefused) {
  const auto error = error_of("name: mine\nscheme: fp8_w8a8\nalgorithms: [rtn]");
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_EQ(error.where, "mine.yaml: scheme");
}

TEST(RecipeOptions, ANumberWithoutWordsSaysSo) {
  auto mixed = recipe("w4a8_g128_rtn");
  const auto refused = apply_option(mixed, "mixed.limit=nan");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().remedy, ::testing::EndsWith("0 to 1"));
  ASSERT_TRUE(apply_option(mixed, "mixed.limit=0.5"));
  EXPECT_EQ(number_of(mixed.steps.front(), "limit"), 0.5);
}

TEST(RecipeFile, CanNotRunAlgorithmsThatDoNothingInItsScheme) {
  const auto mixed = error_of(file("[mixed, rtn]"));
  EXPECT_EQ(mixed.where, "mine.yaml: algorithms");
  EXPECT_THAT(mixed.what, HasSubstr("mixed does nothing: int8_w8a8 has no scheme of more bits"));
  EXPECT_THAT(error_of(file("[clip_search, rtn]", {}, "w4a8_g128")).what, HasSubstr("searches its ranges by itself"));
  EXPECT_THAT(error_of(file("[static_inputs, rtn]", {}, "w4a8_chn")).what, HasSubstr("no variant with a calibrated"));
}

TEST(RecipeFile, CanNotAskForStaticInputsEverywhere) {
  const auto error = error_of("name: a\nscheme: int8_w8a8_static\nalgorithms: [static_inputs, rtn]");
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  EXPECT_EQ(error.where, "mine.yaml: scheme");
  EXPECT_THAT(error.remedy, HasSubstr("int8_w8a8"));
}

TEST(RecipeOptions, KnowTheObserversOfCalibration) {
  for (const Algorithm& algorithm : algorithms()) {
    if (!std::string_view(algorithm.name).starts_with("static")) continue;
    std::vector<std::string_view> names(algorithm.options[0].words.begin(), algorithm.options[0].words.end()), known;
    for (const calib::Observer& observer : calib::observers()) known.push_back(observer.name);
    EXPECT_THAT(names, ::testing::UnorderedElementsAreArray(known));
    EXPECT_EQ(algorithm.options[0].initial, calib::kDefaultObserver);
  }
}

TEST(RecipeList, NamesEveryRecipeAlgorithmAndOptionIn100Columns) {
  const auto text = list_text();
  for (const auto& row : recipe_rows())
    EXPECT_THAT(text, HasSubstr("  " + std::string(row.name) + ": "));
  for (const auto& algorithm : algorithms()) {
    EXPECT_THAT(text, HasSubstr("  " + std::string(algorithm.name) + " "));
    for (const auto& option : algorithm.options) {
      EXPECT_THAT(text, HasSubstr(std::string(option.name) + "=" + std::string(option.initial)));
    }
  }
  EXPECT_THAT(text, HasSubstr("no kernel here multiplies fp8"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100) << line;
}

}  // namespace
}  // namespace oasr::quantize
