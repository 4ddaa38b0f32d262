#include "quantize/workbench.h"

#include <algorithm>

#include "base/check.h"
#include "checkpoint/checkpoint.h"
#include "load/convert.h"
#include "models/registry.h"
#include "oasr/version.h"

namespace oasr::quantize {
namespace {

quant::QuantizedLayer stored_as(const calib::LayerPlan& layer) {
  return quant::quantized_layer(layer.scheme, layer.runtime && !layer.exponents.empty());
}

// The schemes of the layers, each once, in the order of the table of schemes.
std::vector<std::string> schemes_of(const calib::Plan& plan) {
  std::vector<std::string> schemes;
  for (const quant::QuantScheme& scheme : quant::quant_schemes()) {
    const bool used = std::ranges::any_of(
        plan.layers, [&](const auto& layer) { return layer.second.scheme == scheme.name; });
    if (used) schemes.emplace_back(scheme.name);
  }
  return schemes;
}

// The spec with the layers and schemes of the plan.
std::string quantization_text(const calib::Plan& plan, quant::QuantizationSpec spec) {
  spec.layers.clear();
  for (const auto& [path, layer] : plan.layers) spec.layers[path] = stored_as(layer);
  spec.schemes = schemes_of(plan);
  return dump_json(quant::to_json(spec));
}

// What a matrix takes more as the checkpoint has it than in a copy of this dtype; both are whole panels of rows.
std::int64_t saved_bytes(const TensorSource& original, DType copy) {
  constexpr std::int64_t kPanel = kernels::PackedWeight::kPanel;
  const std::int64_t rows = original.shape[0], columns = original.shape.elements() / rows;
  const std::size_t own = *storage_bytes(original.format, Shape{1});
  return (rows + kPanel - 1) / kPanel * kPanel * columns *
         (static_cast<std::int64_t>(own) - static_cast<std::int64_t>(dtype_size(copy)));
}

}  // namespace

Result<Workbench> Workbench::open(const std::filesystem::path& path, std::optional<DType> dtype,
                                  ExecContext context) {
  auto loaded = TRY(load::load_model(path, {.dtype = dtype, .originals = true}, context));
  Workbench bench(std::move(loaded), dtype, context);
  if (!bench.loaded_.quantization.empty()) {
    return unexpected(
        ErrorCode::invalid_argument,
        "the checkpoint is quantized already (" + bench.loaded_.quantization.producer.recipe + ")",
        path.string(), "quantize the full-precision checkpoint that it was made from");
  }
  const models::Architecture* architecture = TRY(models::find_architecture(bench.loaded_.source));
  bench.facts_ = TRY(architecture->layer_facts(bench.loaded_.source));
  bench.layout_ = TRY(architecture->quantization_layout(bench.loaded_.source));
  bench.weights_ = std::make_unique<calib::Weights>(bench.loaded_.model->layers(), bench.loaded_.originals);
  return bench;
}

Status Workbench::reload() {
  loaded_ = TRY(load::load_checkpoint(std::move(loaded_.source), {.dtype = dtype_, .originals = true}, context_));
  *weights_ = calib::Weights(loaded_.model->layers(), loaded_.originals);
  if (planner_) planner_->reload(loaded_.model->layers());
  return {};
}

std::int64_t Workbench::full_bytes(const std::string& path) const {
  const auto& rows = loaded_.report.layers;
  const auto row = std::ranges::find(rows, path, &load::LayerReport::path);
  if (row == rows.end() || row->weight_bytes == 0) return 0;  // tied to an embedding
  const auto original = std::ranges::find(loaded_.originals, path + ".weight", &TensorSource::name);
  CHECK(original != loaded_.originals.end(), "a layer without a matrix");
  return row->weight_bytes + (dtype_ ? saved_bytes(*original, *dtype_) : 0);
}

std::int64_t Workbench::full_bytes() const {
  std::int64_t bytes = loaded_.report.weight_bytes;
  for (const TensorSource& original : loaded_.originals) {
    bytes += dtype_ ? saved_bytes(original, *dtype_) : 0;
  }
  return bytes;
}

void Workbench::calibrated(calib::Statistics statistics, Decisions decisions) {
  statistics_ = std::move(statistics);
  decisions_ = std::move(decisions);
  planner_.reset();
}

Result<quant::QuantizationSpec> Workbench::select(std::span<const std::string> returned,
                                                  std::string_view fallback,
                                                  const std::string& reason) const {
  auto spec = TRY(quant::select(decisions_.request, facts_, quant::Origin::calibrated));
  spec.producer.version = version();
  spec.producer.recipe = decisions_.recipe;
  spec.producer.options = decisions_.options;
  for (const std::string& path : returned) {
    const auto layer = spec.layers.find(path);
    if (layer == spec.layers.end()) continue;
    const auto scheme = TRY(quant::find_scheme(layer->second.scheme));
    if (!fallback.empty() && scheme->fallback == fallback) {
      layer->second = quant::quantized_layer(fallback);
    } else {
      spec.layers.erase(layer);
    }
    spec.producer.skipped.push_back({path, reason});
  }
  return spec;
}

Result<calib::Plan> Workbench::plan(const quant::QuantizationSpec& spec) {
  if (!planner_) {
    planner_ = std::make_unique<calib::Planner>(loaded_.model->layers(), *weights_, layout_, statistics_,
                                                decisions_.plan, context_);
  }
  return planner_->make(facts_, spec);
}

Status Workbench::write(const std::filesystem::path& folder, const calib::Plan& plan,
                        quant::QuantizationSpec spec, const WriteProgress& progress) const {
  NativeContent content = load::content_of(loaded_);
  std::vector<TensorSource> plain;
  std::vector<quant::QuantizedTensors> quantized;
  std::map<std::string, std::vector<float>> biases;  // that are not the model's own
  quantized.reserve(plan.layers.size());
  for (const auto& [path, layer] : plan.layers) {
    auto tensors = TRY(planner_->quantize(plan.folds, layer));
    quantized.push_back(std::move(tensors));
    auto bias = TRY(planner_->corrected_bias(layer));
    if (!bias.empty()) biases[path + ".bias"] = std::move(bias);
    for (TensorSource& tensor : quantized.back().sources(path)) content.tensors.push_back(std::move(tensor));
  }
  for (const auto& [name, tensor] : weights_->tensors()) {
    const bool replaced = name.ends_with(".weight") && plan.layers.contains(name.substr(0, name.size() - 7));
    if (replaced) continue;
    const auto bias = biases.find(name);
    plain.push_back(bias == biases.end() ? tensor : quant::float_source(name, tensor.shape, bias->second));
  }
  plain = calib::folded(std::move(plain), plan.folds);
  TRY(calib::check_half_range(plain, plan.folds));
  std::ranges::move(plain, std::back_inserter(content.tensors));
  content.quantization = quantization_text(plan, std::move(spec));
  return write_native(folder, content, progress);
}

Status Workbench::rewrite_provenance(const std::filesystem::path& folder, const calib::Plan& plan,
                                     quant::QuantizationSpec spec) const {
  return rewrite_quantization(folder, quantization_text(plan, std::move(spec)));
}

Status Workbench::write_folded(const std::filesystem::path& folder, const calib::Folds& folds,
                               const WriteProgress& progress) const {
  NativeContent content = load::content_of(loaded_);
  content.tensors = calib::folded(loaded_.model->layers().state(), folds);
  return write_native(folder, content, progress);
}

}  // namespace oasr::quantize
