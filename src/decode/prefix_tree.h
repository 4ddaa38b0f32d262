// Shared histories of CTC hypotheses: their prefixes as a trie, their emission frames as lists.
// Nodes are counted and reused, so that memory follows the number of tokens, not of frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "text/token_id.h"

namespace oasr::decode {

using NodeId = std::int32_t;
inline constexpr NodeId kNoNode = -1;

// The prefixes that hypotheses have; a prefix is one node, however it came about. A node lives as
// long as somebody holds it or one of its children.
class PrefixTree {
 public:
  struct Node {
    TokenId token = -1;  // -1: the root, the empty prefix
    int length = 0;      // tokens from the root
    NodeId parent = kNoNode;
    NodeId first_child = kNoNode;
    NodeId next_sibling = kNoNode;
    int holders = 0;  // and children
    int slot = -1;    // the owner's: which hypothesis has this prefix; -1: none
  };

  PrefixTree() { clear(); }
  static constexpr NodeId kRoot = 0;

  // Forgets all but the root, which clear() holds.
  void clear() {
    nodes_.clear();
    free_.clear();
    Node root;
    root.holders = 1;
    nodes_.push_back(root);
  }

  const Node& operator[](NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  void set_slot(NodeId id, int slot) { at(id).slot = slot; }
  void hold(NodeId id) { ++at(id).holders; }

  void release(NodeId id) {
    while (id != kNoNode && --at(id).holders == 0) {
      const NodeId parent = at(id).parent;
      NodeId* link = &at(parent).first_child;
      while (*link != id) link = &at(*link).next_sibling;
      *link = at(id).next_sibling;
      free_.push_back(id);
      id = parent;
    }
  }

  // A new child, held once. The caller knows that there is none with this token.
  NodeId add(NodeId parent, TokenId token) {
    NodeId id;
    if (free_.empty()) {
      id = static_cast<NodeId>(nodes_.size());
      nodes_.emplace_back();
      free_.reserve(nodes_.capacity());  // release() never allocates
    } else {
      id = free_.back();
      free_.pop_back();
    }
    Node& above = at(parent);
    at(id) = {token, above.length + 1, parent, kNoNode, above.first_child, 1, -1};
    above.first_child = id;
    ++above.holders;
    return id;
  }

 private:
  Node& at(NodeId id) { return nodes_[static_cast<std::size_t>(id)]; }
  std::vector<Node> nodes_;
  std::vector<NodeId> free_;
};

// Lists of (frame, log-probability) that share their beginnings.
class EmissionLists {
 public:
  struct Node {
    int frame = 0;
    float log_probability = 0;
    TokenId token = 0;
    NodeId before = kNoNode;
    int holders = 0;
  };

  void clear() {
    nodes_.clear();
    free_.clear();
  }

  const Node& operator[](NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  bool lives(NodeId id) const { return (*this)[id].holders > 0; }
  void raise(NodeId id, float log_probability) {
    Node& node = nodes_[static_cast<std::size_t>(id)];
    if (log_probability > node.log_probability) node.log_probability = log_probability;
  }
  void hold(NodeId id) {
    if (id != kNoNode) ++nodes_[static_cast<std::size_t>(id)].holders;
  }
  void release(NodeId id) {
    while (id != kNoNode && --nodes_[static_cast<std::size_t>(id)].holders == 0) {
      free_.push_back(id);
      id = nodes_[static_cast<std::size_t>(id)].before;
    }
  }

  // A list that is `before` and one more; held once.
  NodeId add(NodeId before, int frame, TokenId token, float log_probability) {
    NodeId id;
    if (free_.empty()) {
      id = static_cast<NodeId>(nodes_.size());
      nodes_.emplace_back();
      free_.reserve(nodes_.capacity());
    } else {
      id = free_.back();
      free_.pop_back();
    }
    nodes_[static_cast<std::size_t>(id)] = {frame, log_probability, token, before, 1};
    hold(before);
    return id;
  }

 private:
  std::vector<Node> nodes_;
  std::vector<NodeId> free_;
};

}  // namespace oasr::decode
