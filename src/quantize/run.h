// One run of `oasr quantize`, step by step: read quantize_model() (quantize.cc) from top to bottom.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "oasr/quantize.h"
#include "quantize/analysis.h"
#include "quantize/budget.h"
#include "quantize/calibrate.h"
#include "quantize/destination.h"
#include "quantize/layer_times.h"
#include "quantize/recipes.h"
#include "quantize/report.h"
#include "quantize/workbench.h"

namespace oasr::quantize {

class Run {
 public:
  Run(const QuantizeOptions& options, std::filesystem::path source, std::filesystem::path destination,
      Recipe recipe, std::optional<Destination> drafts, Workbench bench);

  // What the inputs of the layers look like: decoded, or kept from an earlier run.
  Status calibrate();
  // Which layers, which scales, what absorbs them; some layers at full precision.
  Status plan(std::span<const std::string> returned);
  // The smoothed full-precision model says what the original says, or an error that names the group.
  Status prove();
  // Chooses the layers for a budget, or gates what is selected and backs off. False: refused.
  Result<bool> judge();
  // The written checkpoint with its reports, in the destination's place.
  Status write();
  // Numbers for people beyond what deciding needs.
  Status describe();

  Report& report() { return report_; }
  bool analyzes() const { return options_.analyze; }

 private:
  Status read_gate();
  std::filesystem::path candidate() const;  // the draft that becomes the destination
  Status write_candidate();                 // the plan
  Status stage();                           // writes it and loads it as a user would
  Result<const calib::Probe*> probe();      // on a few calibration recordings
  Result<std::vector<std::pair<std::string, calib::Folds>>> single_folds() const;
  Status measure_effects();                 // of every layer, on what the probe says
  Status measure_convolutions(const calib::Probe& ask);
  Result<std::vector<RankedLayer>> ranking();  // by effect, worst first
  std::string_view returns_to() const;
  static std::string precision_text(std::string_view scheme);
  Result<std::int64_t> returned_bytes(const calib::LayerPlan& layer) const;
  Result<bool> settle(GateReport verdict);
  Result<bool> mix(const Budget& budget, const Evaluate& evaluate);
  Result<BudgetChoice> fit(const std::vector<BudgetItem>& items, const ModelCost& full, const Budget& budget,
                           const Evaluate& evaluate);
  Evaluate evaluator(const GateOptions& gate, const std::vector<GateSide>& full);
  Status time_layers();
  const load::LoadedModel* as_served() const;  // the source in memory; null: a copy in another dtype is there
  GateOptions gate_options() const;
  GateCallbacks gate_callbacks() const;
  std::filesystem::path statistics_file() const;
  void say(const std::string& line) const;
  Status cancelled() const;
  WriteProgress writing() const;
  LayerProgress counting(std::string stage) const;

  const QuantizeOptions& options_;
  std::filesystem::path source_, destination_;
  Recipe recipe_;
  std::optional<Destination> drafts_;  // nothing: a dry run
  Workbench bench_;
  Report report_;
  std::vector<std::string> audio_;  // of calibration, paths; the gate's where nothing is calibrated
  EvalInputs gate_inputs_;
  std::vector<std::string> returned_;
  quant::QuantizationSpec spec_;
  calib::Plan plan_;
  std::optional<calib::Probe> probe_;
  std::map<std::string, double> effects_;
  std::optional<load::QuantizationReport> served_;  // of the draft
  std::optional<MeasuredTimes> times_before_, times_after_;
};

}  // namespace oasr::quantize
