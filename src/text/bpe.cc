#include "text/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

namespace oasr {

TokenTable::TokenTable(const std::vector<std::string>& tokens, const std::vector<bool>& hidden) {
  std::size_t total = 0;
  for (const std::string& token : tokens) total += token.size();
  bytes_.reserve(total);
  ends_.reserve(tokens.size());
  for (const std::string& token : tokens) {
    bytes_ += token;
    ends_.push_back(static_cast<std::uint32_t>(bytes_.size()));
    longest_ = std::max(longest_, token.size());
  }
  slots_.assign(std::bit_ceil(2 * tokens.size() + 1), -1);
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].empty() || hidden[id]) continue;
    std::size_t slot = std::hash<std::string_view>{}(tokens[id]) & (slots_.size() - 1);
    while (slots_[slot] >= 0 && (*this)[slots_[slot]] != tokens[id])
      slot = (slot + 1) & (slots_.size() - 1);
    if (slots_[slot] < 0) slots_[slot] = static_cast<TokenId>(id);
  }
}

std::string_view TokenTable::operator[](TokenId id) const {
  const auto i = static_cast<std::size_t>(id);
  const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
  return std::string_view(bytes_).substr(begin, ends_[i] - begin);
}

TokenId TokenTable::find(std::string_view bytes) const {
  if (bytes.empty()) return -1;
  std::size_t slot = std::hash<std::string_view>{}(bytes) & (slots_.size() - 1);
  while (slots_[slot] >= 0 && (*this)[slots_[slot]] != bytes)
    slot = (slot + 1) & (slots_.size() - 1);
  return slots_[slot];
}

BpeEncoder::BpeEncoder(const TokenTable& tokens, std::optional<Merges> merges, bool whole_words)
    : tokens_(tokens), merges_(std::move(merges)), whole_words_(whole_words) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    byte_ids_[static_cast<std::size_t>(byte)] = tokens_.find({&c, 1});
  }
}

std::optional<BpeEncoder::Merge> BpeEncoder::merge_of(TokenId left, TokenId right,
                                                      std::string& scratch) const {
  if (merges_) {
    const auto found = merges_->find(pair_key(left, right));
    return found != merges_->end() ? std::optional(found->second) : std::nullopt;
  }
  if (tokens_[left].size() + tokens_[right].size() > tokens_.longest()) return std::nullopt;
  scratch.assign(tokens_[left]).append(tokens_[right]);
  const TokenId id = tokens_.find(scratch);
  return id >= 0 ? std::optional(Merge{id, id}) : std::nullopt;
}

void BpeEncoder::encode(std::string_view piece, std::vector<TokenId>& ids) const {
  if (whole_words_) {
    if (const TokenId whole = tokens_.find(piece); whole >= 0) return ids.push_back(whole);
  }
  // The symbols as a linked list in an array; the merges that are possible in a heap, by rank and
  // then from the left. An entry is stale if its symbols have changed since.
  struct Symbol {
    TokenId id;
    std::uint32_t previous, next;
  };
  struct Candidate {
    Merge merge;
    std::uint32_t at;  // the left symbol
    TokenId left, right;
    bool operator>(const Candidate& other) const {
      return std::tie(merge.rank, at) > std::tie(other.merge.rank, other.at);
    }
  };
  constexpr std::uint32_t kNone = 0xFFFFFFFF;
  std::vector<Symbol> symbols;
  symbols.reserve(piece.size());
  for (const char c : piece) {
    const TokenId id = byte_ids_[static_cast<unsigned char>(c)];
    const auto at = static_cast<std::uint32_t>(symbols.size());
    if (id >= 0) symbols.push_back({id, at == 0 ? kNone : at - 1, at + 1});
  }
  if (symbols.empty()) return;
  symbols.back().next = kNone;

  std::string scratch;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto consider = [&](std::uint32_t at) {
    if (at == kNone || symbols[at].next == kNone) return;
    const TokenId left = symbols[at].id, right = symbols[symbols[at].next].id;
    if (const auto merge = merge_of(left, right, scratch)) queue.push({*merge, at, left, right});
  };
  for (std::uint32_t at = 0; at + 1 < symbols.size(); ++at) consider(at);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = symbols[best.at];
    if (left.id != best.left || left.next == kNone || symbols[left.next].id != best.right) continue;
    Symbol& right = symbols[left.next];
    left.id = best.merge.id;
    right.id = -1;  // gone
    left.next = right.next;
    if (left.next != kNone) symbols[left.next].previous = best.at;
    consider(left.previous);
    consider(best.at);
  }
  for (std::uint32_t at = 0; at != kNone; at = symbols[at].next) ids.push_back(symbols[at].id);
}

}  // namespace oasr
