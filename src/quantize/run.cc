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
  if (const Step* step = find_step(recipe, "smoothattention")) options.key_alpha = number_of(*step, "alpha");
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
  for (const std::string& word : recipe_.module_types) {
    const auto kind = parse_enum(quant::quant_kind_names(), word);
    if (kind && std::ranges::none_of(bench_.facts(), [&](const auto& layer) { return layer.kind == *kind; })) {
      report_.notes.push_back("no layer of the model is of kind " + word + ", which was asked for");
    }
  }
  report_.calib_dtype = options_.calib_dtype;
  if (bench_.dtype()) {
    report_.notes.push_back("what the layers get and what the model says was seen on a copy with matrices in " +
                            options_.calib_dtype + "; the weights are made from the checkpoint's own");
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
  decisions.options["calibration.dtype"] = options_.calib_dtype;
  // Refused before anything takes long.
  TRY(quant::select(decisions.request, bench_.facts(), quant::Origin::calibrated));
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
                             .dtype = options_.calib_dtype,
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

std::string Run::precision_text(std::string_view scheme) {
  return scheme.empty() ? "at full precision" : "in " + std::string(scheme);
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

// All that the plan folds, one by one, and what it is in words.
Result<std::vector<std::pair<std::string, calib::Folds>>> Run::single_folds() const {
  std::vector<std::pair<std::string, calib::Folds>> all;
  for (const calib::GroupPlan& group : plan_.groups) {
    all.emplace_back(
        fmt::format("the scales of {} into {}", fmt::join(group.group.consumers, ", "), group.group.producer),
        bench_.planner().folds_of(group));
  }
  for (const calib::KeyPlan& keys : plan_.keys) {
    auto& [what, folds] = all.emplace_back(
        fmt::format("the scales of the keys of {} into {}", keys.attention.key, keys.attention.query),
        calib::Folds());
    TRY(calib::fold_keys(keys, bench_.weights(), folds));
  }
  std::erase_if(all, [](const auto& fold) { return fold.second.empty(); });
  return all;
}

Status Run::prove() {
  if (plan_.folds.empty() || !drafts_) return {};
  const calib::Probe* ask = TRY(probe());
  // A copy in bfloat16 takes folds without rounding, as its exponents are those of float32. Of one in float16
  // the folded matrices are float32: some of their values would be subnormal.
  const auto storage = bench_.dtype() == DType::bf16 ? bench_.dtype() : std::nullopt;
  const auto difference_with = [&](const calib::Folds& folds) -> Result<double> {
    const auto folder = drafts_->draft("folded");
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    TRY(bench_.write_folded(folder, folds, writing()));
    return bench_.aside([&]() -> Result<double> {
      const auto folded = TRY(load::load_model(folder, {.dtype = storage}, bench_.context()));
      const auto said = TRY(ask->run(*folded.model));
      return calib::greatest_difference(ask->reference(), said);
    });
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
  for (const auto& [what, folds] : TRY(single_folds())) {
    const double alone = TRY(difference_with(folds));
    if (alone <= kFoldedDifference) continue;
    return unexpected(ErrorCode::internal,
                      fmt::format("folding {} changes what the model says by {:.3g}", what, difference),
                      source_.string(), "nothing was written; leave the layers out with --ignore");
  }
  return unexpected(
      ErrorCode::internal,
      fmt::format("folding all scales changes what the model says by {:.3g}, no group alone does",
                  difference),
      source_.string(), "nothing was written");
}

Status Run::write() {
  if (!drafts_) return {};
  if (report_.gate) {
    auto& options = spec_.producer.options;
    options["gate.verdict"] = report_.gate->verdict;
    options["gate.limit"] = fmt::format("{}", report_.gate->limit);
    options["gate.increase"] = fmt::format("{:.4f}", report_.gate->increase);
    options["gate.utterances"] = std::to_string(report_.gate->utterances);
    TRY(bench_.rewrite_provenance(candidate(), plan_, spec_));
  }
  const auto folder = candidate();
  TRY(write_text_file(folder / kReportJson, dump_json(to_json(report_), 2) + "\n"));
  TRY(write_text_file(folder / kReportHtml, to_html(report_)));
  TRY(cancelled());
  return drafts_->commit(folder);
}

const load::LoadedModel* Run::as_served() const { return bench_.dtype() ? nullptr : &bench_.loaded(); }

Status Run::time_layers() {
  EngineConfig engine;
  engine.model = source_.string();
  engine.device = options_.device;
  engine.threads = options_.threads;
  engine.download = false;
  const auto recordings = evenly_strided(audio_, kProbed);
  const TranscribeOptions decode = gate_options().decode;
  times_before_ = TRY(measure_times(engine, recordings, decode, options_.cancelled, as_served()));
  engine.model = candidate().string();
  times_after_ = TRY(measure_times(engine, recordings, decode, options_.cancelled));
  return {};
}

Status Run::describe() {
  report_.layers = TRY(describe_layers(bench_, plan_, spec_, served_ ? &*served_ : nullptr));
  report_.keys = describe_keys(plan_);
  report_.bytes_before = bench_.full_bytes();
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
