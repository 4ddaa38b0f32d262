// What a search has chosen so far: shared prefixes in one tree, and the facts that rules look at.
#pragma once

#include <vector>

#include "text/tokenizer.h"

namespace oasr::decode {

// A hypothesis' end in the tree. A value of a few words: beams copy it, never their tokens.
struct History {
  int node = -1;      // in the TokenTree; -1: nothing chosen yet
  int length = 0;     // tokens chosen
  TokenId last = -1;  // the newest token
  TokenId before_last = -1;
  TokenId last_timestamp = -1;  // the newest token at or above the tree's timestamp_begin
};

// Append-only tokens with links to their predecessors.
class TokenTree {
 public:
  // Tokens from timestamp_begin on count as timestamps. `capacity` nodes are reserved.
  TokenTree(TokenId timestamp_begin, std::size_t capacity) : timestamp_begin_(timestamp_begin) {
    nodes_.reserve(capacity);
  }

  History extend(const History& history, TokenId token) {
    nodes_.push_back({token, history.node});
    return {static_cast<int>(nodes_.size()) - 1, history.length + 1, token, history.last,
            token >= timestamp_begin_ ? token : history.last_timestamp};
  }

  // The tokens from the first to the history's newest.
  std::vector<TokenId> tokens(const History& history) const {
    std::vector<TokenId> path(static_cast<std::size_t>(history.length));
    int node = history.node;
    for (auto place = path.rbegin(); place != path.rend(); ++place) {
      const Node& entry = nodes_[static_cast<std::size_t>(node)];
      *place = entry.token;
      node = entry.parent;
    }
    return path;
  }

 private:
  struct Node {
    TokenId token;
    int parent;
  };
  TokenId timestamp_begin_;
  std::vector<Node> nodes_;
};

}  // namespace oasr::decode
