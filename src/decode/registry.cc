// The search strategies: to add one, write its file and add a row.
#include <array>

#include "base/check.h"
#include "decode/beam_search.h"
#include "decode/independent_search.h"
#include "decode/search.h"

namespace oasr::decode {
namespace {

constexpr std::array kStrategies{
    Strategy{.name = "sample",
             .serves = [](const SearchOptions& o) { return o.temperature > 0; },
             .rows = [](const SearchOptions& o) { return o.best_of; },
             .create = make_independent_search},
    Strategy{.name = "beam",
             .serves = [](const SearchOptions& o) { return o.beam_size > 1; },
             .rows = [](const SearchOptions& o) { return o.beam_size; },
             .create = make_beam_search},
    Strategy{.name = "greedy",
             .serves = [](const SearchOptions&) { return true; },
             .rows = [](const SearchOptions&) { return 1; },
             .create = make_independent_search},
};

}  // namespace

std::span<const Strategy> strategies() { return kStrategies; }

const Strategy& strategy_for(const SearchOptions& options) {
  for (const Strategy& strategy : kStrategies) {
    if (strategy.serves(options)) return strategy;
  }
  CHECK(false, "the last strategy serves everything");
}

}  // namespace oasr::decode
