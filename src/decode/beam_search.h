// Beam search with patience (Kasai et al. 2022, "A Call for Clarity in Beam Search").
#pragma once

#include "decode/search.h"

namespace oasr::decode {

// Each step extends every beam by its beam_size + 1 likeliest tokens, ranks all candidates by
// cumulative log-probability, sets those ending in eot aside and keeps beam_size others. Ends with
// round(beam_size * patience) finished hypotheses; when the token limit comes first, the best
// unfinished ones fill up to beam_size. Candidates of probability 0 are dropped. Equal scores keep
// the order beam, then rank.
std::unique_ptr<Search> make_beam_search(SearchStart start, const SearchOptions& options,
                                         const LogitRules& rules, std::span<const RowId> rows);

}  // namespace oasr::decode
