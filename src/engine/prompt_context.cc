#include "engine/prompt_context.h"

#include <algorithm>

namespace oasr::engine {
namespace {

void keep_last(std::vector<TokenId>& tokens, std::size_t count) {
  if (tokens.size() > count)
    tokens.erase(tokens.begin(), tokens.end() - static_cast<std::ptrdiff_t>(count));
}

}  // namespace

std::vector<TokenId> PromptContext::tokens() const {
  const auto limit = static_cast<std::size_t>(plan_->prompt_limit());
  const bool carried = plan_->options.carry_initial_prompt;
  std::vector<TokenId> all;
  std::vector<TokenId> rest = decoded_;
  if (carried || !was_reset_) all = plan_->initial_prompt;
  if (carried) keep_last(rest, limit - std::min(limit, all.size()));
  all.insert(all.end(), rest.begin(), rest.end());
  keep_last(all, limit);
  return all;
}

void PromptContext::append(std::span<const TokenId> tokens) {
  decoded_.insert(decoded_.end(), tokens.begin(), tokens.end());
  keep_last(decoded_, static_cast<std::size_t>(plan_->prompt_limit()));
}

void PromptContext::reset() {
  decoded_.clear();
  was_reset_ = true;
}

}  // namespace oasr::engine
