// For tests: a decoder whose logits are a pure function of a row's tokens.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "decode/random.h"
#include "decode/step_scorer.h"

namespace oasr::decode {

// logits(tokens of the row, out [V]).
using ToyLogits = std::function<void(std::span<const TokenId>, std::span<float>)>;

// Pseudo-random logits in [-spread, spread], the same for the same tokens.
inline ToyLogits random_logits(std::uint64_t seed, float spread = 3.0f) {
  return [=](std::span<const TokenId> tokens, std::span<float> out) {
    std::uint64_t state = mix64(seed);
    for (const TokenId id : tokens) state = mix64(state ^ static_cast<std::uint64_t>(id));
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double u = static_cast<double>(mix64(state + i) >> 11) * 0x1.0p-53;
      out[i] = static_cast<float>((2 * u - 1) * spread);
    }
  };
}

class ToyScorer final : public StepScorer {
 public:
  ToyScorer(int vocabulary, int rows, ToyLogits logits, int context = 64)
      : vocabulary_(vocabulary),
        context_(context),
        rows_(static_cast<std::size_t>(rows)),
        logits_(std::move(logits)) {}

  int vocabulary_size() const override { return vocabulary_; }
  int context_size() const override { return context_; }

  void score(std::span<const Input> inputs, std::span<float> logits) override {
    ++calls;
    const auto size = static_cast<std::size_t>(vocabulary_);
    for (const Input& input : inputs) {
      auto& row = rows_.at(static_cast<std::size_t>(input.row));
      for (std::size_t i = 0; i < input.tokens.size(); ++i) {
        row.push_back(input.tokens[i]);
        const bool probed = input.probe >= 0 && i == static_cast<std::size_t>(input.probe);
        for (int times = probed + (i + 1 == input.tokens.size()); times > 0; --times) {
          logits_(row, logits.first(size));
          logits = logits.subspan(size);
        }
      }
      longest = std::max(longest, static_cast<int>(row.size()));
    }
  }

  std::span<float> room(std::size_t logits) override {
    room_.resize(logits);
    return room_;
  }

  int length(RowId row) const override {
    return static_cast<int>(rows_.at(static_cast<std::size_t>(row)).size());
  }
  void truncate(RowId row, int length) override {
    rows_.at(static_cast<std::size_t>(row)).resize(static_cast<std::size_t>(length));
  }
  void reorder(std::span<const RowId> rows, std::span<const RowId> parents) override {
    const auto before = rows_;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows_.at(static_cast<std::size_t>(rows[i])) = before.at(static_cast<std::size_t>(parents[i]));
    }
  }

  int calls = 0;
  int longest = 0;  // positions that any row has held

 private:
  int vocabulary_;
  int context_;
  std::vector<std::vector<TokenId>> rows_;
  ToyLogits logits_;
  std::vector<float> room_;
};

}  // namespace oasr::decode
