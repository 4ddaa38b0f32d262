#include "oasr/quantize.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "api/device.h"
#include "api/guard.h"
#include "api/load_options.h"
#include "device/thread_pool.h"
#include "oasr/eval.h"
#include "quant/layer_rules.h"
#include "quantize/run.h"

namespace oasr {
namespace {

using quantize::Recipe;

Unexpected refuse(const char* option, std::string what, std::string remedy = {}) {
  return unexpected(ErrorCode::invalid_argument, std::move(what), option, std::move(remedy));
}

// The recipe with all that the options say of it.
Result<Recipe> recipe_of(const QuantizeOptions& options) {
  Recipe recipe = TRY(quantize::find_recipe(options.recipe));
  recipe.ignore.insert(recipe.ignore.end(), options.ignore.begin(), options.ignore.end());
  if (!options.module_types.empty()) recipe.module_types = options.module_types;
  const auto kinds = TRY(quant::resolve_kinds(recipe.module_types));
  if (quantize::find_step(recipe, "mixed") != nullptr &&
      std::ranges::all_of(kinds, quant::needs_static_input)) {
    return refuse("module_types",
                  "mixed does nothing: convolutions are int8 beside 4-bit layers, and no other layers "
                  "are selected",
                  "add linear or pointwise_conv, or take an int8 recipe");
  }
  quantize::add_static_conv_inputs(recipe, kinds);
  if (options.alpha) {
    const auto applied = quantize::apply_option(recipe, "smoothquant.alpha=" + *options.alpha);
    if (!applied) return refuse("alpha", applied.error().what, applied.error().remedy);
  }
  std::set<std::string> given;
  if (options.alpha) given.insert("smoothquant.alpha");
  for (const std::string& option : options.options) {
    TRY(quantize::apply_option(recipe, option));
    const std::string name = option.substr(0, option.find('='));
    if (!given.insert(name).second) return refuse("option", name + " is given twice", "give it once");
  }
  return recipe;
}

// What keeps the matrices of the model that is calibrated; nothing: what the checkpoint has them in.
Result<std::optional<DType>> calibration_dtype(const std::string& name) {
  const auto dtype = parse_enum(dtype_names(), name);
  if (dtype == DType::f32) return std::optional<DType>();
  if (dtype == DType::f16 || dtype == DType::bf16) return dtype;
  return refuse("calib_dtype", "'" + name + "' is not a dtype to calibrate in", "use float32, float16 or bfloat16");
}

Status check_numbers(const QuantizeOptions& options) {
  TRY(check_eval_options({.normalizer = options.gate_normalizer}));
  if (options.calib_utterances < 1) return refuse("calib_utterances", "must be 1 or more");
  if (!std::isfinite(options.max_wer_increase) || options.max_wer_increase < 0) {
    return refuse("max_wer_increase", "must be 0 points or more");
  }
  if (options.gate_attempts < 1) return refuse("gate_attempts", "must be 1 or more");
  return {};
}

}  // namespace

Status check_quantize_options(const QuantizeOptions& options) {
  const Recipe recipe = TRY(recipe_of(options));
  TRY(check_numbers(options));
  TRY(check_device(options.device));
  TRY(calibration_dtype(options.calib_dtype));
  if (options.calib_manifest.empty() && quantize::needs_calibration(recipe)) {
    // Convolutions make a recipe calibrate that by itself does not.
    const bool itself = quantize::needs_calibration(TRY(quantize::find_recipe(options.recipe)));
    return refuse("calib_manifest",
                  itself ? "the recipe " + recipe.name + " calibrates, and no recordings are given"
                         : "the input scales of convolutions are calibrated, and no recordings are given",
                  itself ? "give a manifest of recordings, or use a recipe without calibration (int8_w8a8_rtn)"
                         : "give a manifest of recordings, or leave conv1d and conv2d out");
  }
  std::optional<quantize::Budget> budget;
  if (!options.budget.empty()) budget = TRY(quantize::parse_budget(options.budget));
  if (budget && options.gate_manifest.empty() && options.calib_manifest.empty()) {
    return refuse("budget", "layers are measured on recordings, and none are given",
                  "give a calibration manifest or a gate manifest");
  }
  if (budget && budget->wer && options.gate_manifest.empty()) {
    return refuse("budget", "word error is limited, and no recordings are given to measure it on",
                  "give a gate manifest");
  }
  if (options.dry_run && (!options.gate_manifest.empty() || budget)) {
    return refuse("dry_run", "a dry run writes nothing that a gate or a budget could measure",
                  "leave out one of them");
  }
  return {};
}

std::string quantize_recipes() { return quantize::list_text(); }

Result<QuantizeOutcome> quantize_model(const std::string& model, const std::string& destination,
                                       const QuantizeOptions& options) {
  return guarded([&]() -> Result<QuantizeOutcome> {
    TRY(check_quantize_options(options));
    Recipe recipe = TRY(recipe_of(options));
    if (options.device != "auto") TRY(open_device(options.device));  // before anything is calibrated
    const auto source = TRY(locate_model(model, options.download));
    std::optional<quantize::Destination> drafts;
    if (!options.dry_run) {
      auto opened = TRY(quantize::Destination::open(destination, source, options.force));
      drafts.emplace(std::move(opened));
    }
    const int threads = TRY(thread_count(options.threads));
    ThreadPool pool(threads);
    const Isa isa = TRY(selected_isa());
    const auto dtype = TRY(calibration_dtype(options.calib_dtype));
    auto bench = TRY(quantize::Workbench::open(source, dtype, {.pool = &pool, .isa = isa}));

    quantize::Run run(options, source, destination, std::move(recipe), std::move(drafts), std::move(bench));
    TRY(run.calibrate());
    TRY(run.plan({}));
    TRY(run.prove());
    bool passed = true;
    if (!options.dry_run) passed = TRY(run.judge());
    TRY(run.describe());
    if (passed) TRY(run.write());

    QuantizeOutcome outcome;
    if (passed && !options.dry_run) outcome.path = destination;
    outcome.gate_passed = passed;
    if (!passed) {
      outcome.refusal = run.report().unmet.empty() ? "the quantized model hears worse than the limit allows"
                                                   : "no mix of precisions meets the budget";
    }
    outcome.summary = quantize::to_text(run.report());
    if (options.analyze) outcome.analysis = quantize::analysis_text(run.report());
    outcome.report_json = dump_json(quantize::to_json(run.report()), 2) + "\n";
    return outcome;
  });
}

}  // namespace oasr
