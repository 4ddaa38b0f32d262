#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "eval/bootstrap.h"
#include "eval/counting.h"
#include "eval/lengths.h"
#include "eval/report.h"
#include "oasr/eval.h"

namespace oasr {
namespace eval {
namespace {

using Key = std::pair<std::string, std::string>;

Unexpected differ(std::string what) {
  return unexpected(ErrorCode::invalid_argument,
                    "the two results can not be compared: " + std::move(what), {},
                    "they need the same utterances, normalizer and costs");
}

// The index in `b` of every utterance of `a`.
Result<std::vector<std::size_t>> pair_up(const EvalReport& a, const EvalReport& b) {
  std::map<Key, std::size_t> places;
  for (std::size_t i = 0; i < b.utterances.size(); ++i) {
    const auto& u = b.utterances[i];
    if (!places.emplace(Key(u.set, u.id), i).second) {
      return differ(fmt::format("the second has '{}' of set '{}' twice", u.id, u.set));
    }
  }
  std::vector<std::size_t> pairs;
  for (const auto& u : a.utterances) {
    const auto found = places.find(Key(u.set, u.id));
    if (found == places.end()) {
      return differ(
          fmt::format("'{}' of set '{}' is not in the second, or twice in the first", u.id, u.set));
    }
    if (b.utterances[found->second].normalized_reference != u.normalized_reference) {
      return differ(fmt::format("the references of '{}' of set '{}' differ", u.id, u.set));
    }
    pairs.push_back(found->second);
    places.erase(found);
  }
  if (places.empty()) return pairs;
  const auto& [set, id] = places.begin()->first;
  return differ(fmt::format("'{}' of set '{}' is not in the first", id, set));
}

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;  // of utterances of the two reports

EvalDifference difference(std::string name, const EvalReport& a, const EvalReport& b, const Pairs& pairs) {
  EvalDifference d;
  d.name = std::move(name);
  std::vector<Share> shares_a, shares_b;
  for (const auto& [i, j] : pairs) {
    const auto& words_a = a.utterances[i].words;
    const auto& words_b = b.utterances[j].words;
    ++d.utterances;
    add(d.a, words_a);
    add(d.b, words_b);
    shares_a.push_back({words_a.errors(), words_a.reference});
    shares_b.push_back({words_b.errors(), words_b.reference});
  }
  if (d.a.reference > 0) {
    const auto more = static_cast<double>(d.b.errors() - d.a.errors());
    d.difference = 100.0 * more / static_cast<double>(d.a.reference);
  }
  const auto found = paired_interval(shares_a, shares_b, a.options.resamples, a.options.seed);
  d.low = found.low;
  d.high = found.high;
  d.p = found.p;
  return d;
}

}  // namespace
}  // namespace eval

Result<EvalComparison> compare_reports(const EvalReport& a, const EvalReport& b) {
  using namespace eval;
  TRY(check_eval_options(a.options));
  if (a.options.normalizer != b.options.normalizer) {
    return differ(a.options.normalizer + " and " + b.options.normalizer + " normalized them");
  }
  if (a.options.costs != b.options.costs) {
    return differ("costs " + a.options.costs + " and " + b.options.costs + " counted them");
  }
  const auto places = TRY(pair_up(a, b));
  const LengthBuckets buckets(a.utterances);
  Pairs all;
  std::map<std::string, Pairs> sets;
  std::map<std::size_t, Pairs> lengths;
  std::vector<std::string> order;
  EvalComparison comparison;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto& before = a.utterances[i];
    const auto& after = b.utterances[places[i]];
    all.emplace_back(i, places[i]);
    auto& set = sets[before.set];
    if (set.empty()) order.push_back(before.set);
    set.emplace_back(i, places[i]);
    lengths[buckets.of(before)].emplace_back(i, places[i]);
    const auto more = after.words.errors() - before.words.errors();
    const bool same = before.normalized_hypothesis == after.normalized_hypothesis;
    ++(same       ? comparison.same
       : more > 0 ? comparison.worse
       : more < 0 ? comparison.better
                  : comparison.other);
    if (!same) comparison.changes.push_back({i, places[i], more});
  }
  std::stable_sort(comparison.changes.begin(), comparison.changes.end(),
                   [](const auto& x, const auto& y) {
                     const auto size_x = std::abs(x.errors), size_y = std::abs(y.errors);
                     return size_x != size_y ? size_x > size_y : x.errors > y.errors;
                   });
  comparison.groups.push_back(difference("all", a, b, all));
  for (const auto& name : order) {
    if (order.size() > 1) comparison.groups.push_back(difference(name, a, b, sets[name]));
  }
  comparison.length_unit = buckets.unit();
  for (const auto& [bucket, pairs] : lengths) {
    if (lengths.size() > 1) comparison.lengths.push_back(difference(buckets.name(bucket), a, b, pairs));
  }
  return comparison;
}

}  // namespace oasr
