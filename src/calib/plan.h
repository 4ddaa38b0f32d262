// From statistics to decisions: how every selected layer is quantized, and what absorbs its smoothing.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calib/collector.h"
#include "calib/key_smoothing.h"
#include "calib/observers.h"
#include "calib/smoothing.h"
#include "calib/weights.h"
#include "device/thread_pool.h"
#include "kernels/scaled_mm/implementation.h"
#include "quant/layout.h"
#include "quant/methods/registry.h"
#include "quant/selection.h"

namespace oasr::calib {

// The most that one scale for all tokens may cost the mean token: squared error over the square of its
// outputs. Each token counts as much: a few large ones would else hide that the others are rounded to
// nothing.
inline constexpr double kStaticError = 0.01;

struct PlanOptions {
  bool smooth = false;
  std::optional<double> alpha = 0.5;  // nothing: searched for each group, 0 to 1 in steps of 0.1
  // Consumers of a chain get a calibrated scale, unless that makes their error on sampled rows greater than
  // kStaticError; null: none do.
  const Observer* static_inputs = nullptr;
  const Observer* conv_inputs = nullptr;  // of convolutions; the default where there are any
  // Products of a scheme with a fallback get that where the scheme costs the mean token more than this share
  // of its output (squared error over square); nothing: none do.
  std::optional<double> greatest_loss = {};
  bool clip_search = false;  // importance-weighted ranges of weight rows
  bool bias_correction = false;
  std::optional<double> key_alpha = {};  // of SmoothAttention; nothing: keys are not smoothed
  std::function<bool()> cancelled = {};  // polled; true ends with an Error `cancelled`
};

// A group of the layout that is smoothed.
struct GroupPlan {
  quant::SmoothGroup group;
  Smoothing smoothing;
  // Squared error of the quantized consumers' outputs over the outputs' square, on sampled rows: as they
  // are, and smoothed.
  double error_before = 0, error_after = 0;
  double token_error = 0;  // smoothed: the mean of that ratio over the rows
};

struct LayerPlan {
  quant::LayerFacts facts = {};
  std::string scheme = {};
  std::vector<int> exponents = {};        // of its input's channels, s = 2^exponent; empty: not smoothed
  bool runtime = false;                   // 1/s is applied as the input is quantized
  std::optional<float> input_scale = {};  // static schemes
  std::string observer = {};              // that chose it
  int group = -1;                         // of Plan::groups
  std::string reason = {};                // why it has its scheme's fallback, in words
};

struct Plan {
  std::vector<GroupPlan> groups;
  std::map<std::string, LayerPlan, std::less<>> layers;  // quantized ones, by path
  std::vector<KeyPlan> keys;       // attention whose keys are smoothed, in the order of the layout
  Folds folds;                     // of the full-precision model: all but runtime smoothers
  std::vector<std::string> notes;  // what calibration did not reach
};

// What a method makes of rows [M, K]: [M, N]. The context is a copy: nothing watches a trial.
std::vector<float> outputs_of(const quant::LinearMethod& method, ConstMatrix x, ExecContext context);

// Makes plans for one model from one calibration; keeps what plans with other layers share.
class Planner {
 public:
  // All must outlive the planner. `weights` are those of the checkpoint; `layers` may keep fewer bits of them.
  Planner(const layers::LayerList& layers, const Weights& weights, const quant::QuantLayout& layout,
          const Statistics& statistics, const PlanOptions& options, ExecContext context);

  // The layers of the same model, loaded again.
  void reload(const layers::LayerList& layers) { layers_ = &layers; }

  // The layers of `spec` (quant::select); their schemes become the static variants where the options say
  // so. A group is smoothed if one of its consumers is quantized and its error on sampled rows is smaller
  // so: the identity is always a candidate. Errors: bad_checkpoint, a weight that is not finite;
  // invalid_argument, a layer that needs a static scale and that calibration never reached, or
  // smoothed keys of a model that declares no attention for it.
  Result<Plan> make(const std::vector<quant::LayerFacts>& facts, const quant::QuantizationSpec& spec);

  // What one group folds into the full-precision model; nothing for a runtime smoother.
  Folds folds_of(const GroupPlan& group) const;

  // The bias of a quantized product, [N], with the mean error of its outputs on sampled rows taken out; empty
  // where the options do not ask for it, for a layer without a bias, and for convolutions.
  Result<std::vector<float>> corrected_bias(const LayerPlan& layer) const;

  // One layer as it is served, without its fold: 1/s is applied as its input is quantized. The bits are those
  // of the folded model, since powers of two round nothing; of what takes scales of keys, but for rounding.
  Result<quant::QuantizedTensors> standalone(const LayerPlan& layer) const;
  // A product made of that, with the bias and the activation that are given.
  Result<quant::LinearMethodPtr> trial(const LayerPlan& layer, std::vector<float> bias,
                                       kernels::Activation activation) const;

  // The tensors of a quantized layer, as they are stored and served, without its bias; its rows take the fold
  // that `folds` has for them.
  Result<quant::QuantizedTensors> quantize(const Folds& folds, const LayerPlan& layer) const;

 private:
  Status choose_schemes(Plan& plan);
  Status smooth_keys(Plan& plan) const;
  Result<bool> static_input_is_good(const std::string& path, const Plan& plan);
  Status smooth_groups(Plan& plan);
  // As `consumers` are quantized: with static inputs where they have a chain, or all with a scale a token.
  Result<const GroupPlan*> plan_group(const quant::SmoothGroup& group,
                                      const std::vector<std::string>& consumers, const Plan& plan,
                                      bool fixed);
  Result<GroupPlan> best_smoothing(const quant::SmoothGroup& group, const std::vector<std::string>& consumers,
                                   const Plan& plan, bool fixed) const;
  SmoothingInput magnitudes(const quant::SmoothGroup& group, const std::vector<std::string>& consumers) const;
  struct Loss {
    double all = 0, token = 0;  // GroupPlan::error_after, token_error
  };
  Result<Loss> error_of(const std::vector<std::string>& consumers,
                        const std::vector<std::vector<float>>& exact_outputs,
                        const std::vector<int>& exponents, const Plan& plan, bool fixed) const;
  // [M, N] of each product on its sampled rows, at full precision.
  std::vector<std::vector<float>> exact_outputs(const std::vector<std::string>& products) const;
  kernels::Activation activation_of(const std::string& path) const;
  float static_amax(const std::string& path, const std::vector<int>& exponents,
                    const Observer& observer) const;
  bool reached(const std::string& path) const;
  void absorb(const GroupPlan& group, Plan& plan) const;
  Status relieve(Plan& plan) const;
  Status scale_static_inputs(Plan& plan) const;
  std::vector<double> importance_of(const LayerPlan& layer, std::size_t columns) const;
  void clip_rows(const LayerPlan& layer, quant::WeightSource& weight) const;
  bool has_chain(std::string_view path) const;

  const layers::LayerList* layers_;
  const Weights& weights_;
  const quant::QuantLayout& layout_;
  const Statistics& statistics_;
  PlanOptions options_;
  ExecContext context_;
  std::map<std::string, GroupPlan> known_;  // by the paths of the quantized consumers, and `fixed`
};

}  // namespace oasr::calib
