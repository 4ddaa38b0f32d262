// All layers of a loaded model, in the order of the forward pass: for links, reports and saving.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "layers/conv1d.h"
#include "layers/conv2d.h"
#include "layers/embedding.h"
#include "layers/layer_norm.h"
#include "layers/linear.h"

namespace oasr::layers {

// Borrowed from the model. A head that is tied to an embedding is not in `linears`: its numbers are
// the embedding's.
struct LayerList {
  // Float values that belong to no layer (position tables).
  struct Table {
    std::string name;
    Shape shape;
    Floats* values;
  };
  std::vector<Conv1d*> convolutions;
  std::vector<Conv2d*> image_convolutions;
  std::vector<Linear*> linears;
  std::vector<LayerNorm*> norms;
  std::vector<const Embedding*> embeddings;
  std::vector<Table> tables;
  // Moves what kernels read and a checkpoint does not store (a packed copy of a table) to a GPU.
  std::vector<std::function<void(Gpu&)>> moves;

  // Null when there is none.
  Linear* find_linear(std::string_view path) const;
  LayerNorm* find_norm(std::string_view path) const;
  Conv1d* find_convolution(std::string_view path) const;
  Conv2d* find_image_convolution(std::string_view path) const;

  std::int64_t weight_bytes(Isa isa) const;  // resident
  // Moves all numbers to a GPU, where the model then runs.
  void place(Gpu& gpu) const;
  // Sizes the scratch memory of a session's threads for all layers.
  void reserve(ExecContext& context) const;
  // The state dict, to be written; the model must outlive it.
  std::vector<TensorSource> state() const;
};

}  // namespace oasr::layers
