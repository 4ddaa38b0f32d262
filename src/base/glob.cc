#include "base/glob.h"

#include <algorithm>
#include <vector>

namespace oasr {
namespace {

using Pieces = std::vector<std::string_view>;

// A glob cut into "*", "?", "[abc]" and single characters.
Pieces cut(std::string_view glob) {
  Pieces pieces;
  for (std::size_t at = 0; at < glob.size();) {
    std::size_t length = 1;
    if (glob[at] == '[') {
      const bool negated = at + 1 < glob.size() && glob[at + 1] == '!';
      // The first member may be ] itself.
      const std::size_t end = glob.find(']', at + (negated ? 3 : 2));
      if (end != glob.npos) length = end + 1 - at;
    }
    pieces.push_back(glob.substr(at, length));
    at += length;
  }
  return pieces;
}

bool in_set(std::string_view members, char c) {
  const bool negated = members.size() > 1 && members[0] == '!';
  if (negated) members.remove_prefix(1);
  const auto code = [](char x) { return static_cast<unsigned char>(x); };
  bool found = false;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const bool range = i + 2 < members.size() && members[i + 1] == '-';
    const char last = range ? members[i + 2] : members[i];
    found = found || (code(members[i]) <= code(c) && code(c) <= code(last));
    if (range) i += 2;
  }
  return found != negated;
}

// Whether a piece other than * stands for `c`.
bool stands_for(std::string_view piece, char c) {
  if (piece.size() > 1) return in_set(piece.substr(1, piece.size() - 2), c);
  return piece[0] == '?' || piece[0] == c;
}

std::size_t distance(const Pieces& pieces, std::string_view name) {
  std::vector<std::size_t> before(name.size() + 1, 1), row(name.size() + 1);
  before[0] = 0;  // the rest of the row is 1: a beginning of the name was left out
  for (const auto piece : pieces) {
    const bool any_run = piece == "*";
    row[0] = before[0] + (any_run ? 0 : 1);
    for (std::size_t j = 1; j <= name.size(); ++j) {
      if (any_run) {
        row[j] = std::min(before[j], row[j - 1]);
      } else {
        const std::size_t replaced = before[j - 1] + (stands_for(piece, name[j - 1]) ? 0 : 1);
        row[j] = std::min({replaced, before[j] + 1, row[j - 1] + 1});
      }
    }
    std::swap(before, row);
  }
  const std::size_t without_end = *std::min_element(before.begin(), before.end()) + 1;
  return std::min(before.back(), without_end);
}

}  // namespace

bool matches_glob(std::string_view pattern, std::string_view path) {
  const Pieces pieces = cut(pattern);
  std::size_t piece = 0, at = 0;
  // Where to go on with the last * when a later piece fails: it takes one more character.
  std::size_t after_star = pieces.size() + 1, star_end = 0;
  while (at < path.size()) {
    if (piece < pieces.size() && pieces[piece] == "*") {
      after_star = ++piece;
      star_end = at;
    } else if (piece < pieces.size() && stands_for(pieces[piece], path[at])) {
      ++piece;
      ++at;
    } else if (after_star <= pieces.size()) {
      piece = after_star;
      at = ++star_end;
    } else {
      return false;
    }
  }
  while (piece < pieces.size() && pieces[piece] == "*") ++piece;
  return piece == pieces.size();
}

std::optional<std::string_view> nearest(std::string_view glob,
                                        std::span<const std::string_view> names) {
  const Pieces pieces = cut(glob);
  const auto runs = static_cast<std::size_t>(std::count(pieces.begin(), pieces.end(), "*"));
  std::size_t least = (pieces.size() - runs) / 3 + 1;
  std::optional<std::string_view> best;
  for (const auto name : names) {
    const std::size_t away = distance(pieces, name);
    if (away >= least) continue;
    best = name;
    least = away;
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> names) {
  const auto meant = nearest(word, names);
  return meant ? "did you mean " + std::string(*meant) + "? " : std::string();
}

}  // namespace oasr
