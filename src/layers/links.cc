#include "layers/links.h"

#include <algorithm>

#include "base/env.h"

namespace oasr::layers {
namespace {

constexpr const char* kVariable = "OASR_QUANT_FUSION";

Linear& linear_of(const LayerList& layers, const std::string& path) {
  Linear* found = layers.find_linear(path);
  CHECK(found != nullptr, "the layout names no layer of the model: " + path);
  return *found;
}

void link_norm(const quant::SmoothGroup& group, const LayerList& layers, std::vector<Link>& links) {
  LayerNorm* norm = layers.find_norm(group.producer);
  CHECK(norm != nullptr, "the layout names no norm of the model: " + group.producer);
  const bool all = std::ranges::all_of(group.consumers, [&](const std::string& path) {
    return linear_of(layers, path).method().input_form() == quant::InputForm::int8_per_token;
  });
  if (!all) return;
  norm->link();
  for (const std::string& path : group.consumers) links.push_back({norm->path(), path});
}

void link_chain(const quant::GemmChain& chain, const LayerList& layers, std::vector<Link>& links) {
  Linear& producer = linear_of(layers, chain.producer);
  const Linear& consumer = linear_of(layers, chain.consumer);
  if (!producer.method().emits_int8() ||
      consumer.method().input_form() != quant::InputForm::int8_static) {
    return;
  }
  producer.link(consumer);
  links.push_back({chain.producer, chain.consumer});
}

}  // namespace

Result<bool> quantization_fusion() {
  const std::string value = env(kVariable).value_or("1");
  if (value == "0" || value == "1") return value == "1";
  return unexpected(ErrorCode::invalid_argument, "'" + value + "' is neither 0 nor 1", kVariable,
                    "0 makes every layer quantize its own input");
}

Result<std::vector<Link>> link(const quant::QuantLayout& layout, const LayerList& layers) {
  std::vector<Link> links;
  if (!TRY(quantization_fusion())) return links;
  for (const quant::SmoothGroup& group : layout.groups) {
    if (group.fuse_output_quant) link_norm(group, layers, links);
  }
  for (const quant::GemmChain& chain : layout.chains) link_chain(chain, layers, links);
  return links;
}

}  // namespace oasr::layers
