#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "eval/bootstrap.h"
#include "eval/counting.h"
#include "eval/lengths.h"
#include "eval/lines.h"
#include "oasr/eval.h"

namespace oasr {
namespace eval {
namespace {

constexpr std::size_t kConfusionsKept = 20;
constexpr int kMostResamples = 1'000'000;
constexpr std::uint64_t kLargestSeed = std::uint64_t{1}
                                       << 40;  // JSON readers elsewhere keep it exact

using Members = std::vector<const EvalUtterance*>;

ErrorRate rate(const ErrorCounts& counts, const Interval& interval) {
  ErrorRate rate{counts, std::nullopt, interval.low, interval.high};
  if (counts.reference > 0) {
    rate.percent =
        100.0 * static_cast<double>(counts.errors()) / static_cast<double>(counts.reference);
  }
  return rate;
}

EvalGroup make_group(std::string name, const Members& members, const EvalOptions& options) {
  EvalGroup group;
  group.name = std::move(name);
  ErrorCounts words, characters;
  std::vector<std::vector<Share>> shares(2);
  for (const auto* u : members) {
    ++group.utterances;
    group.with_errors += u->words.errors() > 0;
    group.seconds += u->seconds;
    add(words, u->words);
    add(characters, u->characters);
    shares[0].push_back({u->words.errors(), u->words.reference});
    shares[1].push_back({u->characters.errors(), u->characters.reference});
  }
  const auto found = intervals(shares, options.resamples, options.seed);
  group.words = rate(words, found[0]);
  group.characters = rate(characters, found[1]);
  return group;
}

// Groups by what name_of() says, in the order of first appearance or of the names.
template <class NameOf>
std::vector<EvalGroup> group_by(const std::vector<EvalUtterance>& utterances,
                                const EvalOptions& options, bool sorted, NameOf name_of) {
  std::map<std::string, Members> members;
  std::vector<std::string> order;
  for (const auto& u : utterances) {
    auto& list = members[name_of(u)];
    if (list.empty()) order.push_back(name_of(u));
    list.push_back(&u);
  }
  if (sorted) std::sort(order.begin(), order.end());
  std::vector<EvalGroup> groups;
  for (const auto& name : order) groups.push_back(make_group(name, members[name], options));
  return groups;
}

void group_by_length(EvalReport& report) {
  const LengthBuckets buckets(report.utterances);
  report.length_unit = buckets.unit();
  std::vector<Members> members(buckets.count());
  for (const auto& u : report.utterances) members[buckets.of(u)].push_back(&u);
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].empty()) continue;
    report.lengths.push_back(make_group(buckets.name(i), members[i], report.options));
  }
}

using WordCounts = std::map<std::pair<std::string, std::string>, std::int64_t>;

std::vector<EvalConfusion> most_frequent(const WordCounts& pairs) {
  std::vector<EvalConfusion> list;
  for (const auto& [pair, count] : pairs) list.push_back({pair.first, pair.second, count});
  // Stable: the map's order decides between equals.
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  if (list.size() > kConfusionsKept) list.resize(kConfusionsKept);
  return list;
}

void find_confusions(EvalReport& report, EditCosts costs) {
  WordCounts substitutions, deletions, insertions;
  for (const auto& u : report.utterances) {
    if (u.words.errors() == 0) continue;
    for (const auto& word : align_words(u, costs)) {
      if (word.op == EditOp::match) continue;
      auto& pairs = word.op == EditOp::substitution ? substitutions
                    : word.op == EditOp::deletion   ? deletions
                                                    : insertions;
      ++pairs[{std::string(word.reference), std::string(word.hypothesis)}];
    }
  }
  report.substitutions = most_frequent(substitutions);
  report.deletions = most_frequent(deletions);
  report.insertions = most_frequent(insertions);
}

// A text that only the normalizer empties is scored; it is said.
void note_empty_references(EvalReport& report) {
  std::vector<std::string> emptied;
  for (const auto& u : report.utterances) {
    if (u.words.reference == 0) emptied.push_back(u.id);
  }
  if (emptied.empty()) return;
  report.notes.push_back(fmt::format(
      "{} references have no word (after normalization); what is recognized there counts "
      "as inserted: {}",
      emptied.size(), some_of(emptied)));
}

}  // namespace
}  // namespace eval

Status check_eval_options(const EvalOptions& options) {
  TRY(eval::counting_of(options));
  if (options.resamples < 1 || options.resamples > eval::kMostResamples) {
    return unexpected(ErrorCode::invalid_argument, "must be from 1 to 1000000", "resamples");
  }
  if (options.seed > eval::kLargestSeed) {
    return unexpected(ErrorCode::invalid_argument, "must be at most 2^40", "bootstrap_seed");
  }
  return {};
}

Result<EvalReport> score_utterances(std::vector<EvalUtterance> utterances,
                                    const EvalOptions& options) {
  TRY(check_eval_options(options));
  if (utterances.empty())
    return unexpected(ErrorCode::invalid_argument, "there is no utterance to score");
  const auto counting = TRY(eval::counting_of(options));
  EvalReport report;
  report.options = options;
  for (auto& utterance : utterances) TRY(eval::count_utterance(utterance, counting));
  report.utterances = std::move(utterances);
  const auto& all = report.utterances;
  eval::Members members;
  for (const auto& u : all) members.push_back(&u);
  report.total = eval::make_group("all", members, options);
  report.sets = eval::group_by(all, options, false, [](const auto& u) { return u.set; });
  const auto spoken = [](const auto& u) { return !u.speaker.empty(); };
  if (std::any_of(all.begin(), all.end(), spoken)) {
    report.speakers = eval::group_by(all, options, true, [](const auto& u) { return u.speaker; });
  }
  eval::group_by_length(report);
  eval::find_confusions(report, counting.costs);
  eval::note_empty_references(report);
  return report;
}

}  // namespace oasr
