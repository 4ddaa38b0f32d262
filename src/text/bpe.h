// Byte-pair encoding: tokens by id, and the merges between them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/token_id.h"

namespace oasr {

// Byte strings by id, in one block, found by content.
class TokenTable {
 public:
  // `tokens` by id; an empty one is an unused id. Those that are `hidden` are not found.
  TokenTable(const std::vector<std::string>& tokens, const std::vector<bool>& hidden);

  std::size_t size() const { return ends_.size(); }
  std::string_view operator[](TokenId id) const;
  // The smallest id of these bytes that is not hidden, or -1. Empty bytes have none.
  TokenId find(std::string_view bytes) const;
  std::size_t longest() const { return longest_; }

 private:
  std::string bytes_;
  std::vector<std::uint32_t> ends_;  // of the tokens in bytes_
  std::vector<TokenId> slots_;       // an open hash table, -1 is free
  std::size_t longest_ = 0;
};

// Which neighbours become one token, and which first.
class BpeEncoder {
 public:
  struct Merge {
    std::int32_t rank = 0;  // lower merges first
    TokenId id = 0;         // the result
  };
  using Merges = std::unordered_map<std::uint64_t, Merge>;
  static std::uint64_t pair_key(TokenId left, TokenId right) {
    return (std::uint64_t{static_cast<std::uint32_t>(left)} << 32) |
           static_cast<std::uint32_t>(right);
  }

  // `merges` by pair_key; without them, two tokens merge if their joint bytes are a token, smaller
  // ids first (tiktoken's rule). `whole_words`: a piece that is a token needs no merges. The table
  // must outlive the encoder.
  BpeEncoder(const TokenTable& tokens, std::optional<Merges> merges, bool whole_words);

  // Appends the ids of one piece. Bytes without a token of their own are left out. O(n log n).
  void encode(std::string_view piece, std::vector<TokenId>& ids) const;

 private:
  std::optional<Merge> merge_of(TokenId left, TokenId right, std::string& scratch) const;

  const TokenTable& tokens_;
  std::optional<Merges> merges_;
  bool whole_words_;
  std::array<TokenId, 256> byte_ids_{};
};

}  // namespace oasr
