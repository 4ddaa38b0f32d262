#include "quantize/run.h"

#include <fmt/format.h>

#include <algorithm>

#include "audio/audio_source.h"
#include "base/fs.h"
#include "engine/transcriber.h"
#include "oasr/version.h"
#include "quantize/describe.h"
#include "quantize/statistics_cache.h"

namespace oasr::quantize {
namespace {

constexpr std::size_t kProbed = 4;          // recordings of the probe
constexpr double kProbedSeconds = 0.5;      // at least
constexpr double kFoldedDifference = 1e-4;  // of a log-probability: stated in docs/quantization.md

std::string precision_text(std::string_view scheme) {
  return scheme.empty() ? "at full precision" : "in " + std::string(scheme);
}

// A few of the recordings, evenly strided.
std::vector<std::string> evenly_strided(const std::vector<std::string>& all, std::size_t count) {
  std::vector<std::string> some;
  const std::size_t taken = std::min(count, all.size());
  for (std::size_t i = 0; i < taken; ++i) some.push_back(all[i * all.size() / taken]);
  return some;
}

calib::PlanOptions plan_options(const Recipe& recipe, std::function<bool()> cancelled) {
  calib::PlanOptions options;
  options.cancelled = std::move(cancelled);
  options.smooth = find_step(recipe, "smoothquant") != nullptr;
  if (options.smooth) options.alpha = fixed_alpha(recipe);
  const auto observer = [&](const char* algorithm) -> const calib::Observer* {
    const Step* step = find_step(recipe, algorithm);
    return step == nullptr ? nullptr : calib::find_observer(step->options.at("observer")).value();
  };
  options.static_inputs = observer("static_inputs");
  options.conv_inputs = observer("static_conv_inputs");
  if (const Step* step = find_step(recipe, "mixed")) options.greatest_loss = number_of(*step, "limit");
  options.clip_search = find_step(recipe, "clip_search") != nullptr;
  options.bias_correction = find_step(recipe, "bias_correction") != nullptr;
  return options;
}

}  // namespace

Run::Run(const QuantizeOptions& options, std::filesystem::path source, std::filesystem::path destination,
         Recipe recipe, std::optional<Destination> drafts, Workbench bench)
    : options_(options),
      source_(std::move(source)),
      destination_(std::move(destination)),
      recipe_(std::move(recipe)),
      drafts_(std::move(drafts)),
      bench_(std::move(bench)) {
  report_.source = source_.string();
  report_.destination = destination_.string();
  report_.architecture = bench_.loaded().model->info().architecture;
  report_.tool = std::string("oasr ") + version();
  report_.recipe = recipe_.name;
  report_.options = options_of(recipe_);
  report_.ignore = recipe_.ignore;
  const auto kinds = quant::resolve_kinds(recipe_.module_types).value();
  for (const quant::QuantKind kind : kinds) {
    report_.module_types.emplace_back(enum_name(quant::quant_kind_names(), kind));
  }
}

std::filesystem::path Run::statistics_file() const {
  return options_.statistics.empty() ? statistics_path(destination_)
                                     : std::filesystem::path(options_.statistics);
}

Status Run::cancelled() const {
  if (options_.cancelled && options_.cancelled()) return unexpected(ErrorCode::cancelled, "stopped");
  return {};
}

WriteProgress Run::writing() const {
  return [this](std::uint64_t done, std::uint64_t total) {
    if (options_.progress)
      options_.progress("writing", static_cast<double>(done), static_cast<double>(total));
    return cancelled().has_value();
  };
}

LayerProgress Run::counting(std::string stage) const {
  return [this, stage = std::move(stage)](double done, double total) {
    if (options_.progress) options_.progress(stage, done, total);
    return cancelled().has_value();
  };
}

Status Run::calibrate() {
  Decisions decisions{
      .request = {.scheme = recipe_.scheme, .ignore = recipe_.ignore, .module_types = recipe_.module_types},
      .plan = plan_options(recipe_, options_.cancelled),
      .recipe = recipe_.name,
      .options = options_of(recipe_)};
  const bool asks_language = dynamic_cast<const models::AedModel*>(bench_.loaded().model.get()) != nullptr;
  if (options_.language != "auto" && !asks_language) {
    return unexpected(ErrorCode::invalid_argument, "the model is asked for no language", "language",
                      "leave the option out");
  }
  // Recordings that a recipe does not need still say what the layers lose.
  if (!needs_calibration(recipe_) && options_.calib_manifest.empty()) {
    bench_.calibrated({}, std::move(decisions));
    return read_gate();
  }
  const int rate = engine::sample_rate_of(*bench_.loaded().model);
  const CalibrationSet set = TRY(select_calibration(options_.calib_manifest, options_.audio_root,
                                                    options_.calib_utterances, rate, options_.cancelled));
  for (const auto& entry : set.entries) audio_.push_back(entry.audio);
  for (const std::string& note : set.notes) say(note);
  TRY(read_gate());
  const CalibrateOptions how{.language = options_.language,
                             .seed = options_.seed,
                             .progress =
                                 [this](double done, double total) {
                                   if (options_.progress) options_.progress("calibrating", done, total);
                                 },
                             .cancelled = options_.cancelled};
  const auto measure = [&] {
    return quantize::calibrate(bench_.loaded().model, set, watched_layers(bench_.facts(), bench_.layout()),
                               how, bench_.context());
  };
  const std::string key = TRY(calibration_key(bench_.loaded().source, set, how));
  auto found = options_.dry_run ? measure()
                                : calibrate_cached(statistics_file(), key, measure,
                                                   [this](const auto& line) { say(line); });
  auto calibrated = TRY(std::move(found));
  report_.calibration =
      describe_calibration(set, calibrated, options_.calib_utterances, options_.calib_manifest);
  decisions.options["calibration.recordings"] = set.hash;
  decisions.options["calibration.utterances"] = std::to_string(set.entries.size());
  decisions.options["calibration.selection"] = set.selection;
  decisions.options["calibration.seconds"] = fmt::format("{:.1f}", calibrated.seconds);
  bench_.calibrated(std::move(calibrated.statistics), std::move(decisions));
  return {};
}

// What the gate will listen to, before anything takes long.
Status Run::read_gate() {
  if (options_.gate_manifest.empty()) return {};
  gate_inputs_ = TRY(read_gate_inputs(gate_options(), audio_));
  if (!audio_.empty()) return {};
  for (const EvalInput& row : gate_inputs_.rows) audio_.push_back(row.utterance.audio);
  return {};
}

void Run::say(const std::string& line) const {
  if (options_.note) options_.note(line);
}

Status Run::plan(std::span<const std::string> returned) {
  returned_.assign(returned.begin(), returned.end());
  const std::string why =
      options_.budget.empty() ? "so that the word error stays in the limit" : "to meet the budget";
  spec_ = TRY(bench_.select(returned, returns_to(), precision_text(returns_to()) + ", " + why));
  plan_ = TRY(bench_.plan(spec_));
  for (const auto& [path, layer] : plan_.layers) {
    if (!layer.reason.empty()) spec_.producer.skipped.push_back({path, layer.reason});
  }
  return cancelled();
}

// What a layer gets that the scheme costs too much; empty: full precision.
std::string_view Run::returns_to() const { return quant::find_scheme(recipe_.scheme).value()->fallback; }

std::filesystem::path Run::candidate() const { return drafts_->draft("candidate"); }

Status Run::write_candidate() {
  std::error_code ignored;
  std::filesystem::remove_all(candidate(), ignored);
  return bench_.write(candidate(), plan_, spec_, writing());
}

Status Run::stage() {
  TRY(write_candidate());
  served_ = TRY(load::load_model(candidate(), {}, bench_.context())).report;
  return {};
}

// Of calibration recordings; the gate's own where nothing was calibrated.
Result<const calib::Probe*> Run::probe() {
  if (probe_) return &*probe_;
  const int rate = engine::sample_rate_of(*bench_.loaded().model);
  std::vector<std::vector<float>> recordings;
  const auto shortest = static_cast<std::size_t>(kProbedSeconds * rate);
  for (const std::string& path : audio_) {
    const auto source = TRY(open_audio(path, {.sample_rate = rate}));
    auto samples = TRY(read_all(*source));
    if (samples.size() >= shortest) recordings.push_back(std::move(samples));
    if (recordings.size() == kProbed) break;
  }
  if (recordings.empty()) {
    return unexpected(ErrorCode::bad_audio,
                      fmt::format("no calibration recording is {} s long", kProbedSeconds), {},
                      "calibrate with recordings of speech from the domain that is served");
  }
  probe_ = TRY(calib::Probe::make(*bench_.loaded().model, bench_.context(), recordings));
  return &*probe_;
}

Status Run::prove() {
  if (plan_.folds.empty() || !drafts_) return {};
  const calib::Probe* ask = TRY(probe());
  const auto difference_with = [&](const calib::Folds& folds) -> Result<double> {
    const auto folder = drafts_->draft("folded");
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    TRY(bench_.write_folded(folder, folds, writing()));
    const auto folded = TRY(load::load_model(folder, {}, bench_.context()));
    const auto said = TRY(ask->run(*folded.model));
    return calib::greatest_difference(ask->reference(), said);
  };
  const double difference = TRY(difference_with(plan_.folds));
  std::int64_t values = 0;
  for (const auto& utterance : ask->reference().utterances) {
    values += static_cast<std::int64_t>(utterance.log_probs.size() + utterance.token_scores.size());
  }
  report_.proof = FoldProof{.utterances = static_cast<std::int64_t>(ask->reference().utterances.size()),
                            .values = values,
                            .greatest_difference = difference};
  if (difference <= kFoldedDifference) return {};
  for (const calib::GroupPlan& group : plan_.groups) {
    const auto folds = bench_.planner().folds_of(group);
    if (folds.empty()) continue;
    const double alone = TRY(difference_with(folds));
    if (alone <= kFoldedDifference) continue;
    return unexpected(ErrorCode::internal,
                      fmt::format("folding the scales of {} into {} changes what the model says by {:.3g}",
                                  fmt::join(group.group.consumers, ", "), group.group.producer, difference),
                      source_.string(), "nothing was written; leave the layers out with --ignore");
  }
  return unexpected(
      ErrorCode::internal,
      fmt::format("folding all scales changes what the model says by {:.3g}, no group alone does",
                  difference),
      source_.string(), "nothing was written");
}

GateOptions Run::gate_options() const {
  GateOptions gate;
  gate.manifest = options_.gate_manifest;
  gate.max_wer_increase = options_.max_wer_increase;
  gate.normalizer = options_.gate_normalizer;
  gate.engine.threads = options_.threads;
  gate.engine.batch_size = 4;
  gate.engine.download = false;
  gate.decode.ctc.decode = options_.gate_decode;
  if (dynamic_cast<const models::AedModel*>(bench_.loaded().model.get()) != nullptr) {
    gate.decode.language = options_.language;
  }
  return gate;
}

GateCallbacks Run::gate_callbacks() const {
  return {.progress =
              [this](const std::string& stage, std::int64_t done, std::int64_t total) {
                if (options_.progress)
                  options_.progress(stage, static_cast<double>(done), static_cast<double>(total));
              },
          .cancelled = options_.cancelled};
}

Evaluate Run::evaluator(const GateOptions& gate, const std::vector<GateSide>& full) {
  return [this, &gate, &full](std::span<const std::string> returned) -> Result<GateReport> {
    TRY(plan(returned));
    TRY(stage());
    const auto subject = returned.empty() ? std::string("quantized")
                                          : fmt::format("quantized, {} layers {}", returned.size(),
                                                        precision_text(returns_to()));
    const auto sides = TRY(decode_side(subject, candidate().string(), gate_inputs_, gate, gate_callbacks()));
    return quantize::judge(gate, full, sides);
  };
}

Status Run::measure_effects() {
  if (!effects_.empty()) return {};
  const calib::Probe* ask = TRY(probe());
  effects_ = TRY(effects(bench_, plan_, *ask, counting("measuring layers")));
  return measure_convolutions(*ask);
}

// Convolutions are not exchanged in place: a model with one of them quantized is written and loaded.
Status Run::measure_convolutions(const calib::Probe& ask) {
  for (const auto& [path, layer] : plan_.layers) {
    if (effects_.contains(path) || !drafts_) continue;
    std::vector<std::string> others;
    for (const auto& [other, unused] : plan_.layers) {
      if (other != path) others.push_back(other);
    }
    const auto spec = TRY(bench_.select(others, {}, "measured alone"));
    const auto alone = TRY(bench_.plan(spec));
    const auto folder = drafts_->draft("alone");
    TRY(bench_.write(folder, alone, spec, writing()));
    const auto loaded = TRY(load::load_model(folder, {}, bench_.context()));
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    const auto said = TRY(ask.run(*loaded.model));
    effects_[path] = calib::divergence(ask.reference(), said);
  }
  return {};
}

// Of the layer's weight when it returns.
Result<std::int64_t> Run::returned_bytes(const calib::LayerPlan& layer) const {
  const layers::LayerList& layers = bench_.loaded().model->layers();
  const layers::Linear* linear = layers.find_linear(layer.facts.path);
  if (linear != nullptr && !returns_to().empty() &&
      quant::find_scheme(layer.scheme).value()->fallback == returns_to()) {
    calib::LayerPlan returned = layer;
    returned.scheme = returns_to();
    const auto method = TRY(
        bench_.planner().trial(returned, bench_.weights().bias(layer.facts.path), linear->spec().activation));
    return method->info(bench_.context().isa).bytes;
  }
  const auto& rows = bench_.loaded().report.layers;
  const auto row = std::ranges::find(rows, layer.facts.path, &load::LayerReport::path);
  return row == rows.end() ? std::int64_t{0} : row->weight_bytes;
}

Result<std::vector<RankedLayer>> Run::ranking() {
  TRY(measure_effects());
  std::vector<RankedLayer> ranked;
  for (const quant::LayerFacts& facts : bench_.facts()) {
    if (!effects_.contains(facts.path)) continue;
    const calib::LayerPlan& layer = plan_.layers.at(facts.path);
    if (!layer.reason.empty()) continue;  // it has more bits already
    const auto row = std::ranges::find(served_->layers, facts.path, &load::LayerReport::path);
    const std::int64_t now = row == served_->layers.end() ? std::int64_t{0} : row->weight_bytes;
    const std::int64_t then = TRY(returned_bytes(layer));
    ranked.push_back({.path = facts.path, .bytes = then - now});
  }
  std::ranges::stable_sort(ranked, std::ranges::greater(),
                           [&](const RankedLayer& layer) { return effects_.at(layer.path); });
  return ranked;
}

Result<bool> Run::judge() {
  std::optional<Budget> budget;
  if (!options_.budget.empty()) budget = TRY(parse_budget(options_.budget));
  if (options_.gate_manifest.empty()) {
    if (!budget) return TRY(stage()), true;
    return mix(*budget, {});
  }
  GateOptions gate = gate_options();
  if (budget && budget->wer) gate.max_wer_increase = *budget->wer;
  const auto full =
      TRY(decode_side("full precision", source_.string(), gate_inputs_, gate, gate_callbacks()));
  const Evaluate evaluate = evaluator(gate, full);
  if (budget) return mix(*budget, evaluate);
  GateReport verdict = TRY(evaluate({}));
  if (!returns_to().empty()) verdict.returned_to = returns_to();
  if (!verdict.passed) {
    say(verdict.verdict + " Layers go back to " + verdict.returned_to +
        ", those with the greatest effect on the output first.");
    const BackOffStep all_quantized{.layers = {}, .increase = verdict.increase, .passed = false, .bytes = 0};
    const auto ranked = TRY(ranking());
    verdict = TRY(back_off(std::move(verdict), ranked, evaluate, options_.gate_attempts));
    verdict.back_off.insert(verdict.back_off.begin(), all_quantized);
  }
  return settle(std::move(verdict));
}

// The shortest list of layers that passed is the plan.
Result<bool> Run::settle(GateReport verdict) {
  std::vector<std::string> kept;
  std::size_t fewest = SIZE_MAX;
  for (const BackOffStep& step : verdict.back_off) {
    if (!step.passed || step.layers.size() >= fewest) continue;
    fewest = step.layers.size();
    kept = step.layers;
  }
  report_.gate = std::move(verdict);
  if (kept != returned_) {
    TRY(plan(kept));
    TRY(stage());
  }
  return report_.gate->passed;
}

// Layers of both precisions, as a budget wants it; judged, if recordings are given.
Result<bool> Run::mix(const Budget& budget, const Evaluate& evaluate) {
  if (budget.ms && !returns_to().empty()) {
    return unexpected(
        ErrorCode::unsupported,
        "milliseconds are measured against full precision, and layers return to " + std::string(returns_to()),
        "budget", "limit bytes or word error");
  }
  TRY(stage());
  const auto ranked = TRY(ranking());
  if (budget.ms) TRY(time_layers());
  // With all layers of the ranking returned.
  ModelCost full{.bytes = served_->weight_bytes, .ms = times_before_ ? times_before_->total : 0};
  std::vector<BudgetItem> items;
  for (const quant::LayerFacts& facts : bench_.facts()) {
    const auto row = std::ranges::find(ranked, facts.path, &RankedLayer::path);
    if (row == ranked.end()) continue;
    BudgetItem item;
    item.path = facts.path;
    item.effect = effects_.at(facts.path);
    item.bytes_saved = row->bytes;
    full.bytes += row->bytes;
    if (budget.ms) item.ms_saved = times_before_->layers[facts.path] - times_after_->layers[facts.path];
    items.push_back(std::move(item));
  }
  const BudgetChoice choice = TRY(fit(items, full, budget, evaluate));
  report_.gate = choice.gate;
  if (evaluate && !report_.gate) report_.gate = TRY(evaluate(choice.full_precision));
  report_.notes.push_back(fmt::format("{} layers are quantized and {} are not, to meet the budget {}",
                                      choice.quantized.size(), choice.full_precision.size(),
                                      options_.budget));
  return !report_.gate || report_.gate->passed;
}

// Chooses, and makes what is chosen. A layer that stays can take more bytes than it had, with the scales of
// its neighbours folded in: then less is asked for.
Result<BudgetChoice> Run::fit(const std::vector<BudgetItem>& items, const ModelCost& full,
                              const Budget& budget, const Evaluate& evaluate) {
  Budget wanted = budget;
  while (true) {
    BudgetChoice choice = TRY(choose_layers(items, full, wanted, evaluate));
    if (choice.quantized.empty()) {
      return unexpected(ErrorCode::invalid_argument,
                        "nothing needs to be quantized to meet " + options_.budget, "budget",
                        "the full-precision model meets it: use that");
    }
    TRY(plan(choice.full_precision));
    TRY(stage());
    if (!budget.bytes || served_->weight_bytes <= *budget.bytes) return choice;
    *wanted.bytes -= served_->weight_bytes - *budget.bytes;
  }
}

Status Run::write() {
  if (!drafts_) return {};
  if (report_.gate) {
    auto& options = spec_.producer.options;
    options["gate.verdict"] = report_.gate->verdict;
    options["gate.limit"] = fmt::format("{}", report_.gate->limit);
    options["gate.increase"] = fmt::format("{:.4f}", report_.gate->increase);
    options["gate.utterances"] = std::to_string(report_.gate->utterances);
    TRY(write_candidate());
  }
  const auto folder = candidate();
  TRY(write_text_file(folder / kReportJson, dump_json(to_json(report_), 2) + "\n"));
  TRY(write_text_file(folder / kReportHtml, to_html(report_)));
  TRY(cancelled());
  return drafts_->commit(folder);
}

Status Run::time_layers() {
  EngineConfig engine;
  engine.model = source_.string();
  engine.threads = options_.threads;
  engine.download = false;
  const auto recordings = evenly_strided(audio_, kProbed);
  const TranscribeOptions decode = gate_options().decode;
  times_before_ = TRY(measure_times(engine, recordings, decode, options_.cancelled));
  engine.model = candidate().string();
  times_after_ = TRY(measure_times(engine, recordings, decode, options_.cancelled));
  return {};
}

Status Run::describe() {
  report_.layers = TRY(describe_layers(bench_, plan_, spec_, served_ ? &*served_ : nullptr));
  report_.bytes_before = bench_.loaded().report.weight_bytes;
  std::ranges::copy(plan_.notes, std::back_inserter(report_.notes));
  if (served_) {
    report_.bytes_after = served_->weight_bytes;
    count_passes(*served_, report_);
  }
  if (options_.analyze) TRY(measure_effects());
  std::map<std::string, ErrorReport> cumulative;
  if (options_.analyze && drafts_) {
    const calib::Probe* ask = TRY(probe());
    cumulative = TRY(cumulative_errors(bench_, plan_, *ask, candidate()));
  }
  if (drafts_ && !audio_.empty()) {
    const calib::Probe* ask = TRY(probe());
    const auto quantized = TRY(load::load_model(candidate(), {}, bench_.context()));
    const auto said = TRY(ask->run(*quantized.model));
    report_.divergence = calib::divergence(ask->reference(), said);
  }
  if (drafts_ && !audio_.empty() && !times_before_) TRY(time_layers());
  const auto in = [](const auto& map, const std::string& path) {
    const auto found = map.find(path);
    return found == map.end() ? std::nullopt : std::optional(found->second);
  };
  for (LayerEntry& layer : report_.layers) {
    layer.effect = in(effects_, layer.path);
    layer.cumulative = in(cumulative, layer.path);
    if (times_before_) layer.ms_before = in(times_before_->layers, layer.path);
    if (times_after_) layer.ms_after = in(times_after_->layers, layer.path);
  }
  return {};
}

}  // namespace oasr::quantize
