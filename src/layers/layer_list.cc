#include "layers/layer_list.h"

#include <algorithm>
#include <iterator>

namespace oasr::layers {
namespace {

template <class Layer>
Layer* find(const std::vector<Layer*>& layers, std::string_view path) {
  const auto found = std::ranges::find_if(layers, [&](const Layer* l) { return l->path() == path; });
  return found == layers.end() ? nullptr : *found;
}

}  // namespace

Linear* LayerList::find_linear(std::string_view path) const { return find(linears, path); }
LayerNorm* LayerList::find_norm(std::string_view path) const { return find(norms, path); }
Conv1d* LayerList::find_convolution(std::string_view path) const { return find(convolutions, path); }
Conv2d* LayerList::find_image_convolution(std::string_view path) const { return find(image_convolutions, path); }

std::int64_t LayerList::weight_bytes(Isa isa) const {
  std::int64_t bytes = 0;
  for (const Conv1d* layer : convolutions) bytes += layer->method().info(isa).bytes;
  for (const Conv2d* layer : image_convolutions) bytes += layer->method().info(isa).bytes;
  for (const Linear* layer : linears) bytes += layer->method().info(isa).bytes;
  for (const Embedding* layer : embeddings) bytes += static_cast<std::int64_t>(layer->bytes());
  for (const Table& table : tables) bytes += static_cast<std::int64_t>(table.values->size() * sizeof(float));
  return bytes;
}

void LayerList::place(Gpu& gpu) const {
  for (Conv1d* layer : convolutions) layer->place(gpu);
  for (Conv2d* layer : image_convolutions) layer->place(gpu);
  for (Linear* layer : linears) layer->place(gpu);
  for (LayerNorm* layer : norms) layer->place(gpu);
  for (const Embedding* layer : embeddings) layer->place(gpu);
  for (const Table& table : tables) table.values->place(gpu);
  for (const auto& move : moves) move(gpu);
  gpu.wait();  // other queues of the card, a clone's, read them from now on
}

void LayerList::reserve(ExecContext& context) const {
  for (const Conv1d* layer : convolutions) layer->method().reserve(context);
  for (const Conv2d* layer : image_convolutions) layer->method().reserve(context);
  for (const Linear* layer : linears) layer->method().reserve(context);
  for (const LayerNorm* layer : norms) layer->reserve(context);
}

std::vector<TensorSource> LayerList::state() const {
  std::vector<TensorSource> tensors;
  const auto add = [&](std::vector<TensorSource> more) {
    std::ranges::move(more, std::back_inserter(tensors));
  };
  for (const Conv1d* layer : convolutions) add(layer->method().state(layer->path()));
  for (const Conv2d* layer : image_convolutions) add(layer->method().state(layer->path()));
  for (const Linear* layer : linears) add(layer->method().state(layer->path()));
  for (const LayerNorm* layer : norms) add(layer->state());
  for (const Embedding* layer : embeddings) add(layer->state());
  for (const Table& table : tables) {
    tensors.push_back(quant::float_source(table.name, table.shape, table.values->values()));
  }
  return tensors;
}

}  // namespace oasr::layers
