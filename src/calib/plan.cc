#include "calib/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "calib/weight_clip.h"
#include "kernels/quantize/op.h"
#include "quant/methods/registry.h"

namespace oasr::calib {
namespace {

using quant::Fold;

float scale_of(float amax) { return amax / kernels::kInt8Greatest; }

// The last `values.size() / tied` rows of the producer, for a fold into value rows.
std::vector<float> last_rows(const std::vector<float>& rows, std::size_t count) {
  CHECK(rows.size() >= count, "a projection with fewer rows than values");
  return {rows.end() - static_cast<std::ptrdiff_t>(count), rows.end()};
}

std::size_t value_rows(const quant::SmoothGroup& group, std::size_t channels) {
  return channels * static_cast<std::size_t>(group.kv_heads) / static_cast<std::size_t>(group.query_heads);
}

// One value a row of a key/value head for each of the query heads that share it.
std::vector<float> for_query_heads(const std::vector<float>& rows, const quant::SmoothGroup& group) {
  const auto shared = static_cast<std::size_t>(group.query_heads / group.kv_heads);
  const std::size_t width = rows.size() / static_cast<std::size_t>(group.kv_heads);
  std::vector<float> all;
  for (std::size_t head = 0; head < static_cast<std::size_t>(group.query_heads); ++head) {
    const auto from = rows.begin() + static_cast<std::ptrdiff_t>(head / shared * width);
    all.insert(all.end(), from, from + static_cast<std::ptrdiff_t>(width));
  }
  return all;
}

void raise(std::vector<float>& greatest, const std::vector<float>& values) {
  if (greatest.empty()) greatest.assign(values.size(), 0.0f);
  for (std::size_t i = 0; i < values.size(); ++i) greatest[i] = std::max(greatest[i], values[i]);
}

std::string key_of(const std::vector<std::string>& paths) {
  std::string key;
  for (const std::string& path : paths) key += path + "\n";
  return key;
}

quant::MethodOptions method_options(const ExecContext& context) {
  return {.scaled_mm = &kernels::scaled_mm_implementation(kernels::scaled_mm_backend_of(context.isa)),
          .isa = context.isa,
          .pool = context.pool};
}

bool is_dynamic(const std::string& scheme) { return quant::find_scheme(scheme).value()->activations.dynamic; }

// The quantized layers of a group.
std::vector<std::string> quantized_consumers(const quant::SmoothGroup& group, const Plan& plan) {
  std::vector<std::string> consumers;
  for (const std::string& path : group.consumers) {
    if (plan.layers.contains(path)) consumers.push_back(path);
  }
  return consumers;
}

}  // namespace

std::vector<float> outputs_of(const quant::LinearMethod& method, ConstMatrix x, ExecContext context) {
  context.observer = nullptr;
  method.reserve(context);
  std::vector<float> y(static_cast<std::size_t>(x.rows * method.out_features()));
  // Rows are finite, and so are weights: a sum that is not shows in what is made of it.
  static_cast<void>(
      method.forward(context, x, {}, {y.data(), x.rows, method.out_features(), method.out_features()}));
  return y;
}

Planner::Planner(const layers::LayerList& layers, const Weights& weights, const quant::QuantLayout& layout,
                 const Statistics& statistics, const PlanOptions& options, ExecContext context)
    : layers_(&layers),
      weights_(weights),
      layout_(layout),
      statistics_(statistics),
      options_(options),
      context_(context) {}

bool Planner::has_chain(std::string_view path) const {
  return std::ranges::any_of(layout_.chains,
                             [&](const quant::GemmChain& chain) { return chain.consumer == path; });
}

bool Planner::reached(const std::string& path) const {
  const auto found = statistics_.find(path);
  return found != statistics_.end() && found->second.rows() > 0;
}

Result<Plan> Planner::make(const std::vector<quant::LayerFacts>& facts, const quant::QuantizationSpec& spec) {
  Plan plan;
  for (const quant::LayerFacts& layer : facts) {
    const quant::QuantizedLayer* quantized = spec.find(layer.path);
    if (quantized == nullptr) continue;
    LayerPlan& planned = plan.layers[layer.path];
    planned.facts = layer;
    planned.scheme = quantized->scheme;
  }
  TRY(choose_schemes(plan));
  TRY(smooth_groups(plan));
  TRY(relieve(plan));
  TRY(scale_static_inputs(plan));
  TRY(smooth_keys(plan));
  return plan;
}

Status Planner::choose_schemes(Plan& plan) {
  if (options_.static_inputs == nullptr) return {};
  for (auto& [path, layer] : plan.layers) {
    if (!has_chain(path)) continue;
    if (!reached(path)) {
      plan.notes.push_back(path +
                           " was never reached by the calibration audio: its input has a scale a token");
      continue;
    }
    const bool good = TRY(static_input_is_good(path, plan));
    if (!good) {
      plan.notes.push_back(path +
                           " keeps a scale a token: one calibrated scale would cost the mean token more than "
                           "1 % of its output");
      continue;
    }
    const auto scheme = TRY(quant::find_scheme(layer.scheme));
    const auto fixed = TRY(quant::static_variant(*scheme));
    layer.scheme = fixed->name;
  }
  return {};
}

Result<bool> Planner::static_input_is_good(const std::string& path, const Plan& plan) {
  const auto group = std::ranges::find_if(layout_.groups, [&](const quant::SmoothGroup& g) {
    return std::ranges::find(g.consumers, path) != g.consumers.end();
  });
  if (!options_.smooth || group == layout_.groups.end()) {
    const Loss error = TRY(error_of({path}, exact_outputs({path}), {}, plan, true));
    return error.token <= kStaticError;
  }
  const GroupPlan* fixed = TRY(plan_group(*group, quantized_consumers(*group, plan), plan, true));
  return fixed->token_error <= kStaticError;
}

Status Planner::smooth_groups(Plan& plan) {
  for (const quant::SmoothGroup& group : layout_.groups) {
    const auto consumers = quantized_consumers(group, plan);
    if (!options_.smooth || consumers.empty()) continue;
    if (!reached(consumers.front())) {
      plan.notes.push_back(consumers.front() + " was never reached by the calibration audio: not smoothed");
      continue;
    }
    const bool fixed = std::ranges::any_of(consumers, [&](const std::string& path) {
      return has_chain(path) && !is_dynamic(plan.layers.at(path).scheme);
    });
    const GroupPlan* planned = TRY(plan_group(group, consumers, plan, fixed));
    absorb(*planned, plan);
  }
  return {};
}

// What the scale of each channel meets: the statistics of every consumer are of the same input.
SmoothingInput Planner::magnitudes(const quant::SmoothGroup& group,
                                   const std::vector<std::string>& consumers) const {
  SmoothingInput input;
  for (const std::string& path : consumers) {
    const InputStatistics& statistics = statistics_.find(path)->second;
    std::vector<float> seen;
    for (std::int64_t k = 0; k < statistics.channels(); ++k) seen.push_back(statistics.amax(k));
    raise(input.input, seen);
  }
  for (const std::string& path : group.fold == Fold::runtime ? consumers : group.consumers) {
    raise(input.weight, weights_.column_amax(path));
  }
  switch (group.fold) {
    case Fold::runtime:
      break;
    case Fold::norm_affine:
    case Fold::producer_rows:
      input.absorber = weights_.output_amax(group.producer);
      break;
    case Fold::v_to_o: {
      const auto rows =
          last_rows(weights_.output_amax(group.producer), value_rows(group, input.input.size()));
      input.absorber = for_query_heads(rows, group);
      tie_heads(input.input, group.query_heads, group.kv_heads);
      tie_heads(input.weight, group.query_heads, group.kv_heads);
      break;
    }
  }
  return input;
}

Result<const GroupPlan*> Planner::plan_group(const quant::SmoothGroup& group,
                                             const std::vector<std::string>& consumers, const Plan& plan,
                                             bool fixed) {
  const std::string key = key_of(consumers) + (fixed ? "static" : "token");
  const auto known = known_.find(key);
  if (known != known_.end()) return &known->second;
  auto best = TRY(best_smoothing(group, consumers, plan, fixed));
  return &known_.emplace(key, std::move(best)).first->second;
}

Result<GroupPlan> Planner::best_smoothing(const quant::SmoothGroup& group,
                                          const std::vector<std::string>& consumers, const Plan& plan,
                                          bool fixed) const {
  if (options_.cancelled && options_.cancelled()) return unexpected(ErrorCode::cancelled, "stopped");
  const SmoothingInput input = magnitudes(group, consumers);
  std::vector<double> alphas;
  if (options_.alpha) alphas = {*options_.alpha};
  for (int tenth = 0; !options_.alpha && tenth <= 10; ++tenth) alphas.push_back(tenth / 10.0);
  GroupPlan best;
  best.group = group;
  best.smoothing.exponents.assign(input.input.size(), 0);
  const auto exact = exact_outputs(consumers);
  const Loss plain = TRY(error_of(consumers, exact, best.smoothing.exponents, plan, fixed));
  best.error_before = best.error_after = plain.all;
  best.token_error = plain.token;
  for (const double alpha : alphas) {
    Smoothing smoothing = smooth(input, alpha);
    if (smoothing.identity()) continue;
    const Loss error = TRY(error_of(consumers, exact, smoothing.exponents, plan, fixed));
    if (error.all >= best.error_after) continue;
    best.smoothing = std::move(smoothing);
    best.error_after = error.all;
    best.token_error = error.token;
  }
  return best;
}

kernels::Activation Planner::activation_of(const std::string& path) const {
  const layers::Linear* linear = layers_->find_linear(path);
  CHECK(linear != nullptr, "groups are of products");
  return linear->spec().activation;
}

std::vector<std::vector<float>> Planner::exact_outputs(const std::vector<std::string>& products) const {
  std::vector<std::vector<float>> outputs;
  for (const std::string& path : products) {
    const auto exact = weights_.exact(path, weights_.bias(path), activation_of(path));
    outputs.push_back(outputs_of(*exact, statistics_.find(path)->second.sample(), context_));
  }
  return outputs;
}

// Of the products' outputs on sampled rows, with the smoothing applied as the input is quantized: the bits of
// a fold, since powers of two round nothing.
Result<Planner::Loss> Planner::error_of(const std::vector<std::string>& consumers,
                                        const std::vector<std::vector<float>>& exact_outputs,
                                        const std::vector<int>& exponents, const Plan& plan,
                                        bool fixed) const {
  double error = 0, power = 0, ratios = 0, tokens = 0;
  for (std::size_t consumer = 0; consumer < consumers.size(); ++consumer) {
    const std::string& path = consumers[consumer];
    const std::vector<float>& exact = exact_outputs[consumer];
    const InputStatistics& statistics = statistics_.find(path)->second;
    LayerPlan layer = plan.layers.at(path);
    layer.exponents = exponents;
    if (fixed && has_chain(path)) {
      const auto scheme = TRY(quant::find_scheme(layer.scheme));
      const auto with_scale = TRY(quant::static_variant(*scheme));
      layer.scheme = with_scale->name;
      layer.input_scale = scale_of(static_amax(path, exponents, *options_.static_inputs));
    }
    const auto method = TRY(trial(layer, weights_.bias(path), activation_of(path)));
    const ConstMatrix x = statistics.sample();
    const auto rounded = outputs_of(*method, x, context_);
    const std::size_t width = exact.size() / static_cast<std::size_t>(std::max<std::int64_t>(1, x.rows));
    for (std::size_t row = 0; row < exact.size(); row += width) {
      double row_error = 0, row_power = 0;
      for (std::size_t i = row; i < row + width; ++i) {
        const double difference = static_cast<double>(rounded[i]) - exact[i];
        row_error += difference * difference;
        row_power += static_cast<double>(exact[i]) * exact[i];
      }
      error += row_error;
      power += row_power;
      if (row_power == 0) continue;
      ratios += row_error / row_power;
      ++tokens;
    }
  }
  return Loss{.all = power > 0 ? error / power : 0.0, .token = tokens > 0 ? ratios / tokens : 0.0};
}

Result<quant::QuantizedTensors> Planner::standalone(const LayerPlan& layer) const {
  LayerPlan alone = layer;
  alone.runtime = true;
  return quantize({}, alone);
}

Result<quant::LinearMethodPtr> Planner::trial(const LayerPlan& layer, std::vector<float> bias,
                                              kernels::Activation activation) const {
  const auto tensors = TRY(standalone(layer));
  return quant::quant_method(layer.scheme)
      .from_slots(quant::quantized_layer(layer.scheme), tensors.view(), std::move(bias), activation,
                  method_options(context_));
}

// Last: what they fold comes to what the groups fold into the same products.
Status Planner::smooth_keys(Plan& plan) const {
  if (!options_.key_alpha) return {};
  if (layout_.attention.empty()) {
    return unexpected(ErrorCode::invalid_argument,
                      "the model has no attention whose scores are queries times keys and nothing else",
                      "smoothattention", "leave the algorithm out of the recipe");
  }
  for (const quant::AttentionScores& attention : layout_.attention) {
    const std::string keys = output_of(attention.key);
    if (!reached(keys)) {
      plan.notes.push_back(attention.key +
                           " was never reached by the calibration audio: its keys are not smoothed");
      continue;
    }
    plan.keys.push_back(plan_keys(attention, weights_, statistics_.find(keys)->second, *options_.key_alpha));
    TRY(fold_keys(plan.keys.back(), weights_, plan.folds));
  }
  return {};
}

Folds Planner::folds_of(const GroupPlan& group) const {
  Plan alone;
  absorb(group, alone);
  return std::move(alone.folds);
}

// Enters the group in the plan: the consumers' columns, and what takes 1/s.
void Planner::absorb(const GroupPlan& planned, Plan& plan) const {
  const int index = static_cast<int>(plan.groups.size());
  plan.groups.push_back(planned);
  const quant::SmoothGroup& group = planned.group;
  const bool runtime = group.fold == Fold::runtime;
  const std::vector<int>& exponents = planned.smoothing.exponents;
  for (const std::string& path : group.consumers) {
    const auto layer = plan.layers.find(path);
    if (layer != plan.layers.end()) layer->second.group = index;
    if (planned.smoothing.identity()) continue;
    if (layer != plan.layers.end()) {
      layer->second.exponents = exponents;
      layer->second.runtime = runtime;
    }
    if (!runtime) plan.folds[path].columns = exponents;
  }
  if (runtime || planned.smoothing.identity()) return;
  std::vector<int>& rows = plan.folds[group.producer].rows;
  if (group.fold != Fold::v_to_o) {
    rows = exponents;
    return;
  }
  const std::size_t values = value_rows(group, exponents.size());
  const auto all = static_cast<std::size_t>(weights_.rows(group.producer));
  const auto shared = static_cast<std::size_t>(group.query_heads / group.kv_heads);
  const std::size_t width = exponents.size() / static_cast<std::size_t>(group.query_heads);
  rows.assign(all, 0);
  for (std::size_t i = 0; i < values; ++i) {
    rows[all - values + i] = exponents[i / width * shared * width + i % width];
  }
}

// Layers that lose too much in the scheme get its fallback.
Status Planner::relieve(Plan& plan) const {
  if (!options_.greatest_loss) return {};
  for (auto& [path, layer] : plan.layers) {
    const auto scheme = TRY(quant::find_scheme(layer.scheme));
    if (scheme->fallback.empty() || layers_->find_linear(path) == nullptr || !reached(path)) continue;
    if (options_.cancelled && options_.cancelled()) return unexpected(ErrorCode::cancelled, "stopped");
    const Loss loss = TRY(error_of({path}, exact_outputs({path}), layer.exponents, plan, false));
    if (loss.token <= *options_.greatest_loss) continue;
    layer.reason = fmt::format("{} would cost the mean token {:.2g} % of its output: {} instead",
                               layer.scheme, 100 * loss.token, scheme->fallback);
    layer.scheme = scheme->fallback;
  }
  return {};
}

// What the observer keeps of the input, and of its padding where that asks for more.
float Planner::static_amax(const std::string& path, const std::vector<int>& exponents,
                           const Observer& observer) const {
  float greatest = 0;
  for (const std::string& key : {path, padding_of(path)}) {
    const auto found = statistics_.find(key);
    if (found == statistics_.end() || found->second.rows() == 0) continue;
    const InputStatistics& seen = found->second;
    greatest = std::max(
        greatest, observer.amax(exponents.empty() ? seen.histogram() : seen.scaled_histogram(exponents)));
  }
  return greatest;
}

Status Planner::scale_static_inputs(Plan& plan) const {
  for (auto& [path, layer] : plan.layers) {
    const auto scheme = TRY(quant::find_scheme(layer.scheme));
    if (scheme->activations.dynamic) continue;
    if (!reached(path)) {
      return unexpected(ErrorCode::invalid_argument,
                        "its input scale is static, and the calibration audio never reached it", path,
                        "calibrate with other audio, or leave the layer out with --ignore");
    }
    const Observer* observer = has_chain(path) ? options_.static_inputs : options_.conv_inputs;
    CHECK(observer != nullptr, "a static scale without an observer");
    layer.input_scale = scale_of(static_amax(path, layer.exponents, *observer));
    layer.observer = observer->name;
  }
  return {};
}

// b' = b + mean over rows of (X Wᵀ − Q(X) Q(W)ᵀ), before the activation. The scales of the layer's own fold
// do not matter: 1/s is applied as the input is quantized.
Result<std::vector<float>> Planner::corrected_bias(const LayerPlan& layer) const {
  const std::string& path = layer.facts.path;
  std::vector<float> bias = weights_.bias(path);
  const auto found = statistics_.find(path);
  if (!options_.bias_correction || bias.empty() || layers_->find_linear(path) == nullptr ||
      found == statistics_.end() || found->second.rows() == 0) {
    return std::vector<float>();
  }
  const auto rounded = TRY(trial(layer, {}, kernels::Activation::none));
  const auto exact = weights_.exact(path, {}, kernels::Activation::none);
  const ConstMatrix x = found->second.sample();
  const auto y = outputs_of(*exact, x, context_), q = outputs_of(*rounded, x, context_);
  for (std::size_t n = 0; n < bias.size(); ++n) {
    double sum = 0;
    for (std::size_t row = 0; row < static_cast<std::size_t>(x.rows); ++row) {
      const std::size_t at = row * bias.size() + n;
      sum += static_cast<double>(y[at]) - q[at];
    }
    bias[n] += static_cast<float>(sum / static_cast<double>(x.rows));
  }
  return bias;
}

// E[x²] of the columns of a weight, which repeat the channels for every tap; empty: nothing was seen.
std::vector<double> Planner::importance_of(const LayerPlan& layer, std::size_t columns) const {
  if (!reached(layer.facts.path)) return {};
  const InputStatistics& seen = statistics_.find(layer.facts.path)->second;
  const auto channels = static_cast<std::size_t>(seen.channels());
  std::vector<double> importance;
  for (std::size_t k = 0; k < columns; ++k) {
    const double square = seen.mean_square(static_cast<std::int64_t>(k % channels));
    importance.push_back(layer.exponents.empty() ? square
                                                 : std::ldexp(square, -2 * layer.exponents[k % channels]));
  }
  return importance;
}

// Cuts every row where that costs least: what lies beyond the range that clip_row() keeps is put on its edge,
// which then is the row's greatest magnitude for any method.
void Planner::clip_rows(const LayerPlan& layer, quant::WeightSource& weight) const {
  const auto columns = static_cast<std::size_t>(weight.shape.elements() / weight.shape[0]);
  auto importance = importance_of(layer, columns);
  if (importance.empty()) return;
  weight.rows = [rows = std::move(weight.rows), importance = std::move(importance),
                 codes = std::vector<std::int8_t>(columns)](std::int64_t n, std::span<float> out) mutable {
    rows(n, out);
    const auto clipped = clip_row(out, importance, codes);
    if (!clipped) return;  // not finite: the method refuses the row by name
    const float edge = clipped->scale * kernels::kInt8Greatest;
    for (float& value : out) value = std::clamp(value, -edge, edge);
  };
}

Result<quant::QuantizedTensors> Planner::quantize(const Folds& folds, const LayerPlan& layer) const {
  const std::string& path = layer.facts.path;
  const auto found = folds.find(path);
  Scaling fold = found == folds.end() ? Scaling() : found->second;
  fold.columns = layer.exponents;
  quant::Calibration calibration{.smooth_inv = {}, .input_scale = layer.input_scale, .importance = {}};
  if (layer.runtime) {
    for (const int exponent : layer.exponents) calibration.smooth_inv.push_back(std::ldexp(1.0f, -exponent));
  }
  quant::WeightSource weight = weights_.source(path, fold);
  calibration.importance =
      importance_of(layer, static_cast<std::size_t>(weight.shape.elements() / weight.shape[0]));
  if (options_.clip_search) clip_rows(layer, weight);
  auto tensors = quant::quant_method(layer.scheme).quantize(weight, calibration, method_options(context_));
  if (tensors) return tensors;
  Error error = std::move(tensors).error();
  error.where = path;
  return unexpected(std::move(error));
}

}  // namespace oasr::calib
