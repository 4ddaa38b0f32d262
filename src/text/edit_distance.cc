#include "text/edit_distance.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace oasr {
namespace {

constexpr std::size_t kLongest = std::size_t{1} << 28;  // costs of 4 an element stay below 2^32

// A cell of the table: the cost so far in the upper half, the substitutions in the lower.
using Cell = std::uint64_t;

struct UnitCost {
  static constexpr Cell substitution = 1, gap = 1;
  static constexpr std::array order = {EditOp::insertion, EditOp::deletion, EditOp::substitution};
};

struct Sclite {
  static constexpr Cell substitution = 4, gap = 3;
  static constexpr std::array order = {EditOp::substitution, EditOp::insertion, EditOp::deletion};
};

constexpr Cell cost_of(Cell cell) { return cell >> 32; }
constexpr Cell step(Cell cost) { return cost << 32; }

// The cell that `diagonal`, `above` (a deletion) and `left` (an insertion) lead to.
template <class Costs>
Cell next_cell(Cell diagonal, Cell above, Cell left, bool same, EditOp& op) {
  Cell best = ~Cell{0};
  for (const EditOp way : Costs::order) {
    Cell cell = 0;
    switch (way) {
      case EditOp::insertion:
        cell = left + step(Costs::gap);
        break;
      case EditOp::deletion:
        cell = above + step(Costs::gap);
        break;
      default:
        cell = same ? diagonal : diagonal + step(Costs::substitution) + 1;
        break;
    }
    if (cost_of(cell) < cost_of(best)) {
      best = cell;
      op = way == EditOp::substitution && same ? EditOp::match : way;
    }
  }
  return best;
}

// Fills the table row by row; visit(i, j, op) sees how cell (i, j) is reached, both from 1. Returns
// the last.
template <class Costs, class Visit>
Cell fill(std::span<const char32_t> reference, std::span<const char32_t> hypothesis, Visit visit) {
  std::vector<Cell> row(hypothesis.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = step(Costs::gap * j);
  for (std::size_t i = 1; i <= reference.size(); ++i) {
    Cell diagonal = row[0];
    row[0] += step(Costs::gap);
    for (std::size_t j = 1; j < row.size(); ++j) {
      EditOp op{};
      const bool same = reference[i - 1] == hypothesis[j - 1];
      const Cell cell = next_cell<Costs>(diagonal, row[j], row[j - 1], same, op);
      diagonal = row[j];
      row[j] = cell;
      visit(i, j, op);
    }
  }
  return row.back();
}

template <class Costs>
EditCounts count(std::span<const char32_t> reference, std::span<const char32_t> hypothesis) {
  const Cell last = fill<Costs>(reference, hypothesis, [](std::size_t, std::size_t, EditOp) {});
  const auto n = static_cast<std::int64_t>(reference.size());
  const auto m = static_cast<std::int64_t>(hypothesis.size());
  EditCounts counts;
  counts.reference = n;
  counts.substitutions = static_cast<std::int64_t>(last & 0xFFFFFFFF);
  // The cost gives the number of deletions and insertions, the lengths their difference.
  const auto gaps = (static_cast<std::int64_t>(cost_of(last)) -
                     static_cast<std::int64_t>(Costs::substitution) * counts.substitutions) /
                    static_cast<std::int64_t>(Costs::gap);
  counts.deletions = (gaps + n - m) / 2;
  counts.insertions = gaps - counts.deletions;
  return counts;
}

template <class Costs>
std::vector<EditOp> trace(std::span<const char32_t> reference,
                          std::span<const char32_t> hypothesis) {
  const auto width = hypothesis.size();
  std::vector<EditOp> table(reference.size() * width);
  fill<Costs>(reference, hypothesis, [&](std::size_t i, std::size_t j, EditOp op) {
    table[(i - 1) * width + j - 1] = op;
  });
  std::vector<EditOp> ops;
  for (std::size_t i = reference.size(), j = width; i > 0 || j > 0;) {
    const EditOp op = i == 0   ? EditOp::insertion
                      : j == 0 ? EditOp::deletion
                               : table[(i - 1) * width + j - 1];
    ops.push_back(op);
    if (op != EditOp::insertion) --i;
    if (op != EditOp::deletion) --j;
  }
  std::reverse(ops.begin(), ops.end());
  return ops;
}

void check_lengths(std::span<const char32_t> reference, std::span<const char32_t> hypothesis) {
  CHECK(reference.size() <= kLongest && hypothesis.size() <= kLongest,
        "the caller limits the lengths");
}

}  // namespace

std::span<const EnumName<EditCosts>> edit_costs_names() {
  static constexpr std::array kNames = {EnumName<EditCosts>{EditCosts::unit, "unit"},
                                        EnumName<EditCosts>{EditCosts::sclite, "sclite"}};
  return kNames;
}

EditCounts count_edits(std::span<const char32_t> reference, std::span<const char32_t> hypothesis,
                       EditCosts costs) {
  check_lengths(reference, hypothesis);
  return costs == EditCosts::unit ? count<UnitCost>(reference, hypothesis)
                                  : count<Sclite>(reference, hypothesis);
}

std::vector<EditOp> align(std::span<const char32_t> reference, std::span<const char32_t> hypothesis,
                          EditCosts costs) {
  check_lengths(reference, hypothesis);
  return costs == EditCosts::unit ? trace<UnitCost>(reference, hypothesis)
                                  : trace<Sclite>(reference, hypothesis);
}

}  // namespace oasr
