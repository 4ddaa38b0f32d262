// The fewest edits that make a reference into a hypothesis, and which they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/enum_table.h"

namespace oasr {

// What an edit costs, and which of equally cheap ways is taken: the order is that in which the ways
// into a cell of the table are tried (reference and hypothesis from left to right), and a later one
// has to be cheaper.
enum class EditCosts : std::uint8_t {
  unit,    // every edit 1: the Levenshtein distance; insertion, deletion, substitution
  sclite,  // NIST's: substitution 4, others 3; substitution, insertion, deletion. Prefers more
           // matches, even where it takes one edit more
};

std::span<const EnumName<EditCosts>> edit_costs_names();

struct EditCounts {
  std::int64_t reference = 0;  // its length
  std::int64_t substitutions = 0, deletions = 0, insertions = 0;

  std::int64_t errors() const { return substitutions + deletions + insertions; }
  bool operator==(const EditCounts&) const = default;
};

// Time reference · hypothesis, memory of one row of 8 bytes a hypothesis element. Each at most 2^28
// long.
EditCounts count_edits(std::span<const char32_t> reference, std::span<const char32_t> hypothesis,
                       EditCosts costs);

enum class EditOp : std::uint8_t { match, substitution, deletion, insertion };

// The edits from left to right: their numbers are those of count_edits. Memory of a byte a pair.
std::vector<EditOp> align(std::span<const char32_t> reference, std::span<const char32_t> hypothesis,
                          EditCosts costs);

}  // namespace oasr
