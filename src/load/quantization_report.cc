#include "load/quantization_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace oasr::load {
namespace {

using quant::LayerFacts;

std::string kind_name(const LayerFacts& facts) {
  return std::string(enum_name(quant::quant_kind_names(), facts.kind));
}

// How the layer at `path` runs; nothing for a layer without numbers of its own (a tied head).
std::optional<quant::MethodInfo> method_info(const layers::LayerList& layers, const std::string& path,
                                             Isa isa) {
  if (const layers::Linear* linear = layers.find_linear(path)) return linear->method().info(isa);
  if (const layers::Conv1d* conv = layers.find_convolution(path)) return conv->method().info(isa);
  if (const layers::Conv2d* conv = layers.find_image_convolution(path)) return conv->method().info(isa);
  return std::nullopt;
}

std::string reason_of(const quant::QuantizationSpec& spec, const std::string& path) {
  const auto found = std::ranges::find(spec.producer.skipped, path, &quant::SkippedLayer::path);
  return found == spec.producer.skipped.end() ? std::string() : found->reason;
}

LayerReport plain_report(const LayerFacts& facts) {
  LayerReport layer;
  layer.path = facts.path;
  layer.kind = kind_name(facts);
  layer.in_features = facts.in_features;
  layer.out_features = facts.out_features;
  return layer;
}

LayerReport layer_report(const LayerFacts& facts, const quant::MethodInfo& info,
                         const quant::QuantizationSpec& spec, std::span<const layers::Link> links) {
  LayerReport layer = plain_report(facts);
  layer.scheme = info.scheme;
  layer.storage = info.storage;
  layer.zero_domain = info.zero_domain;
  layer.kernel = info.kernel;
  layer.operands = info.operands;
  layer.reference = info.reference;
  layer.weight_bytes = info.bytes;
  layer.taps = info.taps;
  layer.reason = reason_of(spec, facts.path);
  if (info.scheme.empty()) return layer;
  const auto link = std::ranges::find(links, facts.path, &layers::Link::consumer);
  layer.input = link == links.end() ? "itself" : link->producer;
  return layer;
}

std::string mebibytes(std::int64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

OrderedJson to_json(const LayerReport& layer) {
  OrderedJson json = {{"path", layer.path},
                      {"kind", layer.kind},
                      {"scheme", layer.scheme.empty() ? OrderedJson() : OrderedJson(layer.scheme)},
                      {"storage", layer.storage},
                      {"kernel", layer.kernel},
                      {"operands", layer.operands},
                      {"reference", layer.reference},
                      {"in_features", layer.in_features},
                      {"out_features", layer.out_features},
                      {"weight_bytes", layer.weight_bytes}};
  if (!layer.zero_domain.empty()) json["zero_domain"] = layer.zero_domain;
  if (!layer.input.empty()) json["input_quantized_by"] = layer.input;
  const char* because = layer.scheme.empty() ? "full_precision_because" : "fallback_because";
  if (!layer.reason.empty()) json[because] = layer.reason;
  return json;
}

// "60 linear, 2 conv1d"
std::string count_by(const std::vector<LayerReport>& layers, auto name, auto keep) {
  std::map<std::string, int> counts;
  for (const LayerReport& layer : layers) {
    if (keep(layer)) ++counts[name(layer)];
  }
  std::string text;
  for (const auto& [key, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, key);
  }
  return text;
}

bool is_quantized(const LayerReport& layer) { return !layer.scheme.empty() && !layer.reference; }

void add_layer_table(std::string& text, const std::vector<LayerReport>& layers) {
  std::size_t width = 5;
  for (const LayerReport& layer : layers) width = std::max(width, layer.path.size());
  const auto add_line = [&](std::string_view path, std::string_view scheme, std::string_view storage,
                            std::string_view kernel, std::string_view operands, std::string_view rest) {
    text += fmt::format("{:<{}}  {:<16}  {:<21}  {:<26}  {:<12}  {}\n", path, width, scheme, storage, kernel,
                        operands, rest);
  };
  text += "\n";
  add_line("layer", "scheme", "storage", "kernel", "operands", "input quantized by, or why not");
  for (const LayerReport& layer : layers) {
    const std::string scheme = layer.scheme.empty() ? "full precision"
                               : layer.reference    ? "reference"
                                                    : layer.scheme;
    const std::string join = layer.input.empty() || layer.reason.empty() ? "" : "; ";
    add_line(layer.path, scheme, layer.storage + (layer.zero_domain.empty() ? "" : " " + layer.zero_domain),
             layer.kernel, layer.operands, layer.input + join + layer.reason);
  }
}

}  // namespace

QuantizationReport make_report(const models::SpeechModel& model,
                               std::span<const LayerFacts> facts,
                               const quant::QuantizationSpec& spec,
                               std::span<const layers::Link> links, const ExecContext& context) {
  const models::ModelInfo& info = model.info();
  QuantizationReport report;
  report.arithmetic = arithmetic_name(context.arithmetic);
  report.weight_bytes = report.full_precision_bytes = info.weight_bytes;
  report.kv_format = dtype_name(info.kv_storage);
  if (!spec.empty()) {
    report.producer = spec.producer.tool + " " + spec.producer.version + ", " + spec.producer.recipe;
  }
  for (const LayerFacts& layer : facts) {
    const auto method = method_info(model.layers(), layer.path, context.isa);
    if (!method) {
      LayerReport& tied = report.layers.emplace_back(plain_report(layer));
      tied.storage = dtype_name(info.weight_dtype);
      tied.kernel = "linear " + info.lanes.at("linear");
      tied.operands = report.arithmetic;
      tied.reason = layer.not_quantizable;
      continue;
    }
    LayerReport& row = report.layers.emplace_back(layer_report(layer, *method, spec, links));
    if (method->scheme.empty()) {
      row.operands = report.arithmetic;
      continue;
    }
    (method->reference ? report.reference : report.quantized) += 1;
    report.full_precision_bytes += layer.out_features * layer.in_features * method->taps *
                                       static_cast<std::int64_t>(dtype_size(info.weight_dtype)) -
                                   method->bytes;
    if (std::ranges::find(report.schemes, method->scheme) == report.schemes.end()) {
      report.schemes.push_back(method->scheme);
    }
  }
  return report;
}

OrderedJson to_json(const QuantizationReport& report) {
  OrderedJson layers = OrderedJson::array();
  for (const LayerReport& layer : report.layers) layers.push_back(to_json(layer));
  return {{"schemes", report.schemes},
          {"quantized_layers", report.quantized},
          {"reference_layers", report.reference},
          {"weight_bytes", report.weight_bytes},
          {"full_precision_weight_bytes", report.full_precision_bytes},
          {"arithmetic", report.arithmetic},
          {"kv_format", report.kv_format},
          {"producer", report.producer},
          {"notes", report.notes},
          {"layers", std::move(layers)}};
}

std::string to_text(const QuantizationReport& report, bool layers) {
  std::string text;
  const auto any = [](const LayerReport&) { return true; };
  const auto kind = [](const LayerReport& layer) { return layer.kind; };
  const auto kernel = [](const LayerReport& layer) { return layer.kernel; };
  if (report.schemes.empty()) {
    text = fmt::format("quantization  none: {} in full precision\n", count_by(report.layers, kind, any));
  } else {
    text = fmt::format("quantization  {} ({})\n", fmt::join(report.schemes, ", "), report.producer);
    if (report.quantized > 0) {
      text += fmt::format("quantized     {}\n", count_by(report.layers, kind, is_quantized));
    }
    if (report.reference > 0) {
      text += fmt::format("reference     {} layers run the plain loops of the definition: slow, same bits\n",
                          report.reference);
    }
    const auto rest = count_by(report.layers, kind, [](const LayerReport& l) { return l.scheme.empty(); });
    if (!rest.empty()) text += fmt::format("left alone    {}\n", rest);
  }
  text += fmt::format("kernels       {}\n", count_by(report.layers, kernel, any));
  text += fmt::format("weights       {}", mebibytes(report.weight_bytes));
  if (!report.schemes.empty()) {
    text += fmt::format(" (full precision: {})", mebibytes(report.full_precision_bytes));
  }
  text += fmt::format("\nKV cache      {}\n", report.kv_format);
  if (report.arithmetic != arithmetic_name(Arithmetic::float32)) {
    text += fmt::format("arithmetic    {} operands, float32 sums; attention of decoders in float32\n", report.arithmetic);
  }
  for (const std::string& note : report.notes) text += fmt::format("note          {}\n", note);
  if (layers) add_layer_table(text, report.layers);
  return text;
}

}  // namespace oasr::load
