// The earlier text that a window is prompted with.
#pragma once

#include <span>
#include <vector>

#include "engine/plan.h"

namespace oasr::engine {

// Keeps the tokens that the reference would prompt with: the initial prompt and what was decoded
// since the last reset, as many of the newest as fit. Bounded memory.
class PromptContext {
 public:
  explicit PromptContext(const Plan& plan) : plan_(&plan) {}

  // Tokens after <|startofprev|>; empty: no prompt.
  std::vector<TokenId> tokens() const;

  void append(std::span<const TokenId> tokens);
  // What was decoded so far is not used any more; a carried initial prompt stays.
  void reset();

 private:
  const Plan* plan_;
  std::vector<TokenId> decoded_;
  bool was_reset_ = false;
};

}  // namespace oasr::engine
