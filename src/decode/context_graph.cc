#include "decode/context_graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

namespace oasr::decode {
namespace {

Unexpected bad_phrase(std::size_t index, const std::string& what) {
  return unexpected(ErrorCode::invalid_argument,
                    "context phrase " + std::to_string(index + 1) + " " + what, "context phrases");
}

Status check(std::span<const ContextPhrase> phrases, int vocabulary, TokenId blank) {
  std::size_t total = 0;
  for (std::size_t i = 0; i < phrases.size(); ++i) {
    if (phrases[i].tokens.empty()) return bad_phrase(i, "has no tokens");
    if (!std::isfinite(phrases[i].weight)) return bad_phrase(i, "has a weight that is not finite");
    for (const TokenId token : phrases[i].tokens) {
      if (token >= 0 && token < vocabulary && token != blank) continue;
      return bad_phrase(i, "has the token " + std::to_string(token) +
                               ", which the model never emits (ids are 0 to " +
                               std::to_string(vocabulary - 1) + " without the blank, " +
                               std::to_string(blank) + ")");
    }
    total += phrases[i].tokens.size();
  }
  if (total > ContextGraph::kMostTokens) {
    return unexpected(ErrorCode::invalid_argument,
                      "the context phrases have " + std::to_string(total) + " tokens, more than " +
                          std::to_string(ContextGraph::kMostTokens),
                      "context phrases", "give fewer phrases");
  }
  return {};
}

// Phrases that share their first `depth` tokens.
struct Range {
  std::size_t begin = 0, end = 0;
  std::size_t depth = 0;
};

}  // namespace

Result<std::shared_ptr<const ContextGraph>> ContextGraph::make(
    std::span<const ContextPhrase> phrases, int vocabulary, TokenId blank) {
  TRY(check(phrases, vocabulary, blank));
  std::vector<std::size_t> order(phrases.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return phrases[a].tokens < phrases[b].tokens; });
  auto graph = std::make_shared<ContextGraph>();
  auto& nodes = graph->nodes_;
  std::vector<Range> ranges{{0, order.size(), 0}};  // of every node
  nodes.emplace_back();
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    const auto [begin, end, depth] = ranges[at];
    std::size_t i = begin;
    // Sorted: phrases that end here come first.
    for (; i < end && phrases[order[i]].tokens.size() == depth; ++i) {
      const double whole = phrases[order[i]].weight * static_cast<double>(depth);
      if (depth == 0) continue;
      nodes[at].outputs = i == begin ? whole : std::max(nodes[at].outputs, whole);
    }
    nodes[at].first_child = static_cast<State>(nodes.size());
    while (i < end) {
      const TokenId token = phrases[order[i]].tokens[depth];
      double weight = phrases[order[i]].weight;
      std::size_t next = i + 1;
      for (; next < end && phrases[order[next]].tokens[depth] == token; ++next) {
        weight = std::max(weight, phrases[order[next]].weight);
      }
      Node node;
      node.token = token;
      node.earned = nodes[at].earned + weight;
      nodes.push_back(node);
      ranges.push_back({i, next, depth + 1});
      ++nodes[at].children;
      i = next;
    }
  }
  graph->link();
  return std::shared_ptr<const ContextGraph>(std::move(graph));
}

ContextGraph::State ContextGraph::child(State state, TokenId token) const {
  const Node& node = nodes_[static_cast<std::size_t>(state)];
  const auto begin = nodes_.begin() + node.first_child;
  const auto end = begin + node.children;
  const auto found = std::lower_bound(
      begin, end, token, [](const Node& entry, TokenId wanted) { return entry.token < wanted; });
  return found != end && found->token == token ? static_cast<State>(found - nodes_.begin()) : -1;
}

// Fail links: the state of the longest proper ending that is a beginning. Breadth first, so that
// links of shorter ones are there.
void ContextGraph::link() {
  for (std::size_t at = 0; at < nodes_.size(); ++at) {
    for (State k = 0; k < nodes_[at].children; ++k) {
      Node& node = nodes_[static_cast<std::size_t>(nodes_[at].first_child + k)];
      State from = static_cast<State>(at);
      State target = -1;
      while (from != kStart && target < 0) {
        from = nodes_[static_cast<std::size_t>(from)].fail;
        target = child(from, node.token);
      }
      node.fail = std::max(target, kStart);
      node.outputs += nodes_[static_cast<std::size_t>(node.fail)].outputs;
    }
  }
}

ContextGraph::Step ContextGraph::step(State state, TokenId token) const {
  State from = state;
  State target = child(from, token);
  while (target < 0 && from != kStart) {
    from = nodes_[static_cast<std::size_t>(from)].fail;
    target = child(from, token);
  }
  target = std::max(target, kStart);
  const Node& next = nodes_[static_cast<std::size_t>(target)];
  return {next.earned - nodes_[static_cast<std::size_t>(state)].earned + next.outputs, target};
}

}  // namespace oasr::decode
