// How a run is judged: the gate and backing off, the effect of every layer, budgets.
#include <fmt/format.h>

#include <algorithm>

#include "quantize/run.h"

namespace oasr::quantize {

GateOptions Run::gate_options() const {
  GateOptions gate;
  gate.manifest = options_.gate_manifest;
  gate.max_wer_increase = options_.max_wer_increase;
  gate.normalizer = options_.gate_normalizer;
  gate.engine.device = options_.device;
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
    const auto sides = TRY(bench_.aside(
        [&] { return decode_side(subject, candidate().string(), gate_inputs_, gate, gate_callbacks()); }));
    auto report = TRY(quantize::judge(gate, full, sides));
    if (!returns_to().empty()) report.returned_to = returns_to();
    return report;
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
  return bench_.full_bytes(layer.facts.path);
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
      TRY(decode_side("full precision", source_.string(), gate_inputs_, gate, gate_callbacks(), as_served()));
  const Evaluate evaluate = evaluator(gate, full);
  if (budget) return mix(*budget, evaluate);
  GateReport verdict = TRY(evaluate({}));
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

// The shortest list of layers that passed is the plan; where none did, the report is about all quantized.
Result<bool> Run::settle(GateReport verdict) {
  report_.gate = std::move(verdict);
  const BackOffStep* step = kept_step(*report_.gate);
  const auto kept = step != nullptr && step->passed ? step->layers : std::vector<std::string>();
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
  if (evaluate && !report_.gate && choice.unmet.empty()) report_.gate = TRY(evaluate(choice.full_precision));
  if (choice.unmet.empty()) {
    report_.notes.push_back(fmt::format("{} layers are quantized and {} are not, to meet the budget {}",
                                        choice.quantized.size(), choice.full_precision.size(), options_.budget));
  }
  if (!choice.unmet.empty()) report_.unmet = "The budget " + options_.budget + " " + choice.unmet + ".";
  return report_.unmet.empty() && (!report_.gate || report_.gate->passed);
}

// Chooses, and makes what is chosen. A layer that stays can take more bytes than it had, with the scales of
// its neighbours folded in: then less is asked for.
Result<BudgetChoice> Run::fit(const std::vector<BudgetItem>& items, const ModelCost& full,
                              const Budget& budget, const Evaluate& evaluate) {
  Budget wanted = budget;
  while (true) {
    BudgetChoice choice = TRY(choose_layers(items, full, wanted, evaluate));
    if (choice.quantized.empty() && choice.unmet.empty()) {
      return unexpected(ErrorCode::invalid_argument,
                        "nothing needs to be quantized to meet " + options_.budget, "budget",
                        "the full-precision model meets it: use that");
    }
    // A model without quantized layers is none to report on.
    TRY(plan(choice.quantized.empty() ? std::span<const std::string>() : choice.full_precision));
    TRY(stage());
    if (!choice.unmet.empty() || !budget.bytes || served_->weight_bytes <= *budget.bytes) return choice;
    *wanted.bytes -= served_->weight_bytes - *budget.bytes;
  }
}

}  // namespace oasr::quantize
