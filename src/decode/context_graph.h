// Phrases that a search should prefer, as an automaton over tokens (Aho and Corasick 1975).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "text/token_id.h"

namespace oasr::decode {

struct ContextPhrase {
  std::vector<TokenId> tokens;  // one or more
  double weight = 0;            // log-probability that each of its tokens is given; < 0 discourages
};

// What a hypothesis earns, as WeNet's ContextGraph (Kang et al. 2023): each token that leads into a
// phrase adds the phrase's weight; a token that breaks it off takes back what the part earned, and
// what is kept is the part of another phrase that its end may begin. The last token of a phrase
// adds weight × length once more, for good, since leaving a whole phrase takes back what its tokens
// earned on the way. In all a phrase earns weight × length, overlapping and contained phrases
// theirs.
//
// Where WeNet differs: there a phrase that is the beginning of an earlier one never completes, and
// at the end of an utterance the back-off replaces the bonus instead of being added to it. Phrases
// with different weights share beginnings at the greater weight until one is complete. Of equal
// phrases the greatest weight counts. Immutable.
class ContextGraph {
 public:
  using State = std::int32_t;
  static constexpr State kStart = 0;

  // Errors (invalid_argument): a phrase without tokens, with a token outside [0, vocabulary) or the
  // blank, or with a weight that is not finite; more than kMostTokens in all.
  static constexpr std::size_t kMostTokens = 10'000'000;
  static Result<std::shared_ptr<const ContextGraph>> make(std::span<const ContextPhrase> phrases,
                                                          int vocabulary, TokenId blank);

  struct Step {
    double bonus = 0;
    State state = kStart;
  };
  Step step(State state, TokenId token) const;

  // What is taken back when the utterance ends in `state`: the negative of an unfinished part.
  double back_off(State state) const { return -nodes_[static_cast<std::size_t>(state)].earned; }

  std::size_t size() const { return nodes_.size(); }  // states

 private:
  struct Node {
    TokenId token = -1;
    State fail = kStart;
    State first_child = 0;  // children lie together, by rising token
    State children = 0;
    double earned = 0;   // on the way here; taken back on leaving
    double outputs = 0;  // of the phrases that end here
  };

  State child(State state, TokenId token) const;  // -1: none
  void link();

  std::vector<Node> nodes_;  // breadth first
};

}  // namespace oasr::decode
