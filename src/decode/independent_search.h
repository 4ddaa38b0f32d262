// Greedy search and sampling: every row chooses by itself.
#pragma once

#include "decode/search.h"

namespace oasr::decode {

// At temperature 0 one row takes the likeliest token each time. Above it, best_of rows draw from
// softmax(logits / temperature); log-probabilities are those of the undivided logits. A row leaves
// when it ends.
std::unique_ptr<Search> make_independent_search(SearchStart start, const SearchOptions& options,
                                                const LogitRules& rules,
                                                std::span<const RowId> rows);

}  // namespace oasr::decode
