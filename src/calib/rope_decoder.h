// A tiny decoder with rotary positions for the tests of SmoothAttention: float32, random weights with a few
// large keys, grouped heads, biases everywhere.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "calib/folds.h"
#include "kernels/testing.h"
#include "layers/layer_list.h"
#include "quant/layout.h"

namespace oasr::calib {

struct RopeDecoderConfig {
  quant::RotaryPairing pairing = quant::RotaryPairing::split_half;
  bool fused = false;    // q, k and v are rows of one product
  bool qk_norm = false;  // a norm of each head of queries and of keys, between projection and rotation
  int layers = 2;
  std::int64_t query_heads = 4, kv_heads = 2, head_dim = 8, width = 24, vocabulary = 40;
};

class RopeDecoder {
 public:
  using Tensors = std::map<std::string, std::pair<Shape, std::vector<float>>>;

  explicit RopeDecoder(const RopeDecoderConfig& config) : RopeDecoder(config, random_tensors(config)) {}
  RopeDecoder(const RopeDecoderConfig& config, Tensors tensors)
      : config_(config), tensors_(std::move(tensors)) {
    const layers::Parameters parameters = match(tensors_);
    const auto linear = [&](const std::string& path) {
      return layers::Linear::load(parameters, {.path = path, .parts = {}}, {}).value();
    };
    embedding_.emplace(layers::Embedding::load(parameters, "embed", {}).value());
    for (int i = 0; i < config.layers; ++i) {
      auto& block = *blocks_.emplace_back(std::make_unique<Block>());
      const std::string path = block_path(i);
      for (const std::string& name : projections(config)) block.linears.emplace(name, linear(path + name));
      for (const std::string& name : norms(config)) {
        block.norms.emplace(name, layers::LayerNorm::load(parameters, path + name).value());
      }
    }
    head_.emplace(linear("lm_head"));
  }

  // Of every layer.
  quant::QuantLayout layout() const {
    quant::QuantLayout layout;
    for (int i = 0; i < config_.layers; ++i) {
      const std::string path = block_path(i);
      quant::AttentionScores scores{.query = path + (config_.fused ? "qkv_proj" : "q_proj"),
                                    .key = path + (config_.fused ? "qkv_proj" : "k_proj"),
                                    .key_row = config_.fused ? query_width(config_) : 0,
                                    .query_heads = config_.query_heads,
                                    .kv_heads = config_.kv_heads,
                                    .head_dim = config_.head_dim,
                                    .pairing = config_.pairing};
      if (config_.qk_norm) {
        scores.query = path + "q_norm", scores.key = path + "k_norm";
        scores.key_row = 0, scores.query_heads = scores.kv_heads = 1;
      }
      layout.attention.push_back(scores);
    }
    return layout;
  }

  layers::LayerList layers() const {
    layers::LayerList list;
    list.embeddings.push_back(&*embedding_);
    for (const auto& block : blocks_) {
      for (auto& [name, linear] : block->linears) list.linears.push_back(&linear);
      for (auto& [name, norm] : block->norms) list.norms.push_back(&norm);
    }
    list.linears.push_back(&*head_);
    return list;
  }

  const Tensors& tensors() const { return tensors_; }
  RopeDecoder with(const Folds& folds) const { return {config_, tensors_with(folds)}; }
  Tensors tensors_with(const Folds& folds) const {
    Tensors result;
    for (TensorSource& tensor : folded(layers().state(), folds)) {
      FloatRows rows(tensor);
      std::vector<float> values(static_cast<std::size_t>(tensor.shape.elements()));
      const auto width = static_cast<std::size_t>(rows.columns());
      for (std::int64_t row = 0; row < rows.rows(); ++row) {
        rows.read(row, std::span(values).subspan(static_cast<std::size_t>(row) * width, width));
      }
      result[tensor.name] = {tensor.shape, std::move(values)};
    }
    return result;
  }

  // [tokens, vocabulary]. key_bits > 0: every rotated key of a head is rounded to that many bits, a scale and
  // a least value for each, as a cache would.
  std::vector<float> logits(ExecContext context, const std::vector<int>& tokens, int key_bits = 0) const {
    const auto rows = static_cast<std::int64_t>(tokens.size());
    Values x(rows, config_.width);
    for (std::int64_t row = 0; row < rows; ++row) {
      embedding_->lookup(tokens[static_cast<std::size_t>(row)], x.row(row));
    }
    for (const auto& block : blocks_) {
      const Values mixed = attend(context, *block, x, key_bits);
      block->linears.at("o_proj").forward(context, mixed.matrix(), x.matrix(), x.matrix());
    }
    Values y(rows, config_.vocabulary);
    head_->forward(context, x.matrix(), y.matrix());
    return y.values;
  }

 private:
  struct Values {
    Values(std::int64_t r, std::int64_t c) : rows(r), columns(c), values(static_cast<std::size_t>(r * c)) {}
    Matrix matrix() const { return {values.data(), rows, columns, columns}; }
    std::span<float> row(std::int64_t r) const {
      return std::span(values).subspan(static_cast<std::size_t>(r * columns),
                                       static_cast<std::size_t>(columns));
    }
    std::int64_t rows, columns;
    mutable std::vector<float> values;
  };
  struct Block {
    std::map<std::string, layers::Linear> linears;
    std::map<std::string, layers::LayerNorm> norms;
  };

  static std::string block_path(int i) { return "layers." + std::to_string(i) + "."; }
  static std::int64_t query_width(const RopeDecoderConfig& c) { return c.query_heads * c.head_dim; }
  static std::int64_t key_width(const RopeDecoderConfig& c) { return c.kv_heads * c.head_dim; }
  static std::vector<std::string> projections(const RopeDecoderConfig& c) {
    if (c.fused) return {"qkv_proj", "o_proj"};
    return {"q_proj", "k_proj", "v_proj", "o_proj"};
  }
  static std::vector<std::string> norms(const RopeDecoderConfig& c) {
    if (c.qk_norm) return {"norm", "q_norm", "k_norm"};
    return {"norm"};
  }

  static Tensors random_tensors(const RopeDecoderConfig& c) {
    Tensors tensors;
    unsigned seed = 1;
    const auto add = [&](const std::string& name, Shape shape, float deviation) {
      tensors[name] = {shape, kernels::random_floats(shape.elements(), seed++, deviation)};
    };
    add("embed.weight", {c.vocabulary, c.width}, 1.0f);
    const std::int64_t q = query_width(c), k = key_width(c);
    for (int i = 0; i < c.layers; ++i) {
      for (const std::string& name : projections(c)) {
        const bool out = name == "o_proj";
        const std::int64_t n = out ? c.width : c.fused ? q + 2 * k : name == "q_proj" ? q : k;
        add(block_path(i) + name + ".weight", {n, out ? q : c.width}, 0.2f);
        add(block_path(i) + name + ".bias", {n}, 0.5f);
      }
      for (const std::string& name : norms(c)) {
        const std::int64_t d = name == "norm" ? c.width : c.head_dim;
        add(block_path(i) + name + ".weight", {d}, 1.0f);
        add(block_path(i) + name + ".bias", {d}, 0.5f);
      }
      // Models learn keys that have a few channels, in one half of a pair, far larger than the others.
      const std::string key = block_path(i) + (c.qk_norm ? "k_norm" : c.fused ? "qkv_proj" : "k_proj");
      for (const char* suffix : {".weight", ".bias"}) {
        auto& [shape, values] = tensors.at(key + suffix);
        const auto width = values.size() / static_cast<std::size_t>(shape[0]);
        const auto first = (static_cast<std::size_t>(c.fused && !c.qk_norm ? q : 0) + 3) * width;
        for (std::size_t at = first; at < first + width; ++at) values[at] *= 30;
      }
    }
    add("lm_head.weight", {c.vocabulary, c.width}, 0.2f);
    add("lm_head.bias", {c.vocabulary}, 0.5f);
    return tensors;
  }

  static layers::Parameters match(const Tensors& tensors) {
    StateDict state;
    std::vector<layers::ParameterSpec> specs;
    for (const auto& [name, tensor] : tensors) {
      state.tensors[name] = {.format = StorageFormat::f32,
                             .shape = tensor.first,
                             .bytes = std::as_bytes(std::span(tensor.second)),
                             .row_scale = {}};
      specs.push_back({.name = name, .shape = tensor.first, .stored = name});
    }
    return layers::Parameters::match(state, specs).value();
  }

  // Rotates the heads of a row of position `position`. Written without the code under test.
  void rotate(std::span<float> row, std::int64_t position) const {
    const auto d = static_cast<std::size_t>(config_.head_dim);
    if (config_.pairing == quant::RotaryPairing::none) return;
    for (std::size_t head = 0; head < row.size(); head += d) {
      for (std::size_t j = 0; j < d / 2; ++j) {
        const bool split = config_.pairing == quant::RotaryPairing::split_half;
        float& a = row[head + (split ? j : 2 * j)];
        float& b = row[head + (split ? j + d / 2 : 2 * j + 1)];
        const float angle = static_cast<float>(position) *
                            std::pow(100.0f, -2.0f * static_cast<float>(j) / static_cast<float>(d));
        const float cosine = std::cos(angle), sine = std::sin(angle), x = a, y = b;
        a = x * cosine - y * sine;
        b = x * sine + y * cosine;
      }
    }
  }

  static void round_key(std::span<float> key, int bits) {
    const auto [least, greatest] = std::ranges::minmax(key);
    const float levels = static_cast<float>((1 << bits) - 1), scale = (greatest - least) / levels,
                low = least;
    for (float& value : key) value = low + std::nearbyint((value - low) / scale) * scale;
  }

  // Queries, keys and values of all rows, in one matrix.
  Values project(ExecContext& context, const Block& block, const Values& x) const {
    const std::int64_t q = query_width(config_), k = key_width(config_);
    Values normed(x.rows, x.columns), all(x.rows, q + 2 * k);
    block.norms.at("norm").forward(context, x.matrix(), normed.matrix());
    if (config_.fused) {
      block.linears.at("qkv_proj").forward(context, normed.matrix(), all.matrix());
    } else {
      block.linears.at("q_proj").forward(context, normed.matrix(), all.matrix().column_range(0, q));
      block.linears.at("k_proj").forward(context, normed.matrix(), all.matrix().column_range(q, k));
      block.linears.at("v_proj").forward(context, normed.matrix(), all.matrix().column_range(q + k, k));
    }
    if (!config_.qk_norm) return all;
    const std::int64_t d = config_.head_dim;
    for (std::int64_t head = 0; head < config_.query_heads + config_.kv_heads; ++head) {
      const Matrix rows = all.matrix().column_range(head * d, d);
      block.norms.at(head < config_.query_heads ? "q_norm" : "k_norm").forward(context, rows, rows);
    }
    return all;
  }

  Values attend(ExecContext& context, const Block& block, const Values& x, int key_bits) const {
    const Values all = project(context, block, x);
    const auto q = static_cast<std::size_t>(query_width(config_)),
               k = static_cast<std::size_t>(key_width(config_));
    const auto d = static_cast<std::size_t>(config_.head_dim);
    for (std::int64_t row = 0; row < x.rows; ++row) {
      rotate(all.row(row).first(q + k), row);
      for (std::size_t head = 0; key_bits > 0 && head < k; head += d) {
        round_key(all.row(row).subspan(q + head, d), key_bits);
      }
    }
    Values out(x.rows, static_cast<std::int64_t>(q));
    const auto shared = static_cast<std::size_t>(config_.query_heads / config_.kv_heads);
    for (std::int64_t row = 0; row < x.rows; ++row) {
      for (std::size_t head = 0; head < q / d; ++head) {
        const std::size_t kv = head / shared * d;
        std::vector<float> scores;
        for (std::int64_t past = 0; past <= row; ++past) {
          float sum = 0;
          for (std::size_t i = 0; i < d; ++i) sum += all.row(row)[head * d + i] * all.row(past)[q + kv + i];
          scores.push_back(sum * 0.125f);
        }
        const float greatest = *std::ranges::max_element(scores);
        float total = 0;
        for (float& score : scores) total += score = std::exp(score - greatest);
        for (std::int64_t past = 0; past <= row; ++past) {
          const float share = scores[static_cast<std::size_t>(past)] / total;
          for (std::size_t i = 0; i < d; ++i)
            out.row(row)[head * d + i] += share * all.row(past)[q + k + kv + i];
        }
      }
    }
    return out;
  }

  RopeDecoderConfig config_;
  Tensors tensors_;
  std::optional<layers::Embedding> embedding_;
  std::vector<std::unique_ptr<Block>> blocks_;
  mutable std::optional<layers::Linear> head_;
};

}  // namespace oasr::calib
