// A full-precision model on its way to a quantized checkpoint.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calib/plan.h"
#include "load/load.h"

namespace oasr::quantize {

// What is decided before any layer is quantized.
struct Decisions {
  quant::QuantRequest request;  // scheme, kinds, ignored layers
  calib::PlanOptions plan;
  std::string recipe;                          // for the checkpoint
  std::map<std::string, std::string> options;  // provenance, likewise
};

class Workbench {
 public:
  // Opens a checkpoint at full precision, 16-bit weights as they are (arithmetic is float32). With a dtype the
  // loaded model is a copy whose matrices are kept in that; the weights are the checkpoint's own all the same.
  // Errors: those of load_checkpoint(); invalid_argument: it is quantized already.
  static Result<Workbench> open(const std::filesystem::path& path, std::optional<DType> dtype,
                                ExecContext context);

  const load::LoadedModel& loaded() const { return loaded_; }
  std::optional<DType> dtype() const { return dtype_; }
  const std::vector<quant::LayerFacts>& facts() const { return facts_; }
  const quant::QuantLayout& layout() const { return layout_; }
  const calib::Weights& weights() const { return *weights_; }
  const calib::Statistics& statistics() const { return statistics_; }
  const ExecContext& context() const { return context_; }

  // Resident bytes of a layer's weights, and of all, as the checkpoint is served.
  std::int64_t full_bytes(const std::string& path) const;
  std::int64_t full_bytes() const;

  // What calibration found; the decisions hold from now on.
  void calibrated(calib::Statistics statistics, Decisions decisions);

  // The layers that the decisions select. Those of `returned` get `fallback` where that is their scheme's,
  // else full precision, and the reason.
  Result<quant::QuantizationSpec> select(std::span<const std::string> returned, std::string_view fallback,
                                         const std::string& reason) const;
  Result<calib::Plan> plan(const quant::QuantizationSpec& spec);

  // Of what was calibrated; there after the first plan().
  const calib::Planner& planner() const { return *planner_; }

  // Writes the plan as a quantized checkpoint; its spec gets the plan's schemes and the provenance.
  Status write(const std::filesystem::path& folder, const calib::Plan& plan, quant::QuantizationSpec spec,
               const WriteProgress& progress) const;
  // Writes the provenance of a spec into a folder that write() made of the same plan.
  Status rewrite_provenance(const std::filesystem::path& folder, const calib::Plan& plan,
                            quant::QuantizationSpec spec) const;
  // Calls `body` without the model in memory, so that another one has its place, and reads it again behind it. What
  // loaded() and weights() gave before is gone then, what planner() found is not. The result is that of `body`.
  template <class Body>
  auto aside(const Body& body) -> decltype(body()) {
    loaded_.model.reset();
    auto result = body();
    if (result) TRY(reload());
    return result;
  }

  // Writes the loaded model with the folds of the plan.
  Status write_folded(const std::filesystem::path& folder, const calib::Folds& folds,
                      const WriteProgress& progress) const;

 private:
  Workbench(load::LoadedModel loaded, std::optional<DType> dtype, ExecContext context)
      : loaded_(std::move(loaded)), dtype_(dtype), context_(context) {}

  Status reload();

  load::LoadedModel loaded_;
  std::optional<DType> dtype_;
  ExecContext context_;
  std::vector<quant::LayerFacts> facts_;
  quant::QuantLayout layout_;
  std::unique_ptr<calib::Weights> weights_;
  calib::Statistics statistics_;
  Decisions decisions_;
  std::unique_ptr<calib::Planner> planner_;
};

}  // namespace oasr::quantize
