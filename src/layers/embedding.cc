#include "layers/embedding.h"

#include "layers/pack.h"

namespace oasr::layers {

Result<Embedding> Embedding::load(const Parameters& parameters, std::string path,
                                  const WeightOptions& options) {
  Embedding layer;
  const std::string table = path + ".weight";
  layer.table_ = std::make_shared<kernels::PackedWeight>(
      TRY(pack_stacked(parameters, table, {&table, 1}, options)));
  layer.path_ = std::move(path);
  return layer;
}

void Embedding::lookup(std::int64_t id, std::span<float> out) const {
  CHECK(id >= 0 && id < vocabulary(), "a token id outside the vocabulary");
  table_->unpack_row(id, out);
}

std::vector<TensorSource> Embedding::state() const {
  return {quant::weight_source(path_ + ".weight", *table_)};
}

Linear Embedding::tied_head(std::string path) const {
  auto method = std::make_unique<quant::FloatLinear>(table_, std::vector<float>{}, kernels::Activation::none);
  return Linear({.path = std::move(path), .parts = {path_}}, std::move(method));
}

}  // namespace oasr::layers
