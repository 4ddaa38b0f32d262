// A table of token vectors, kept packed so that a tied output head shares its memory.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "layers/linear.h"

namespace oasr::layers {

class Embedding {
 public:
  // `<path>.weight` [V, D].
  static Result<Embedding> load(const Parameters& parameters, std::string path,
                                const WeightOptions& options);

  const std::string& path() const { return path_; }
  std::int64_t vocabulary() const { return table_->n(); }
  DType storage() const { return table_->storage(); }
  std::size_t bytes() const { return table_->bytes(); }

  // The vector of `id`, D floats; id must be in [0, vocabulary()).
  void lookup(std::int64_t id, std::span<float> out) const;
  // The vectors of tokens, for kernels (kernels::embed_rows).
  const kernels::PackedWeight& table() const { return *table_; }
  void place(Gpu& gpu) const { table_->place(gpu); }

  std::vector<TensorSource> state() const;

  // The output head that is tied to this table: logits = x · tableᵀ.
  Linear tied_head(std::string path) const;

 private:
  std::string path_;
  std::shared_ptr<kernels::PackedWeight> table_;
};

}  // namespace oasr::layers
