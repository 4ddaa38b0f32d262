#include <fmt/format.h>

#include <algorithm>

#include "eval/report.h"

namespace oasr {
namespace eval {
namespace {

std::string counts_text(const ErrorCounts& a, const ErrorCounts& b) {
  return fmt::format("{:+}/{:+}/{:+}", b.substitutions - a.substitutions, b.deletions - a.deletions,
                     b.insertions - a.insertions);
}

OrderedJson difference_json(const EvalDifference& d) {
  return {{"name", d.name},
          {"utterances", d.utterances},
          {"a", counts_json(d.a)},
          {"b", counts_json(d.b)},
          {"percent_a", number_json(percent(d.a))},
          {"percent_b", number_json(percent(d.b))},
          {"difference", number_json(d.difference)},
          {"low", number_json(d.low)},
          {"high", number_json(d.high)},
          {"p", number_json(d.p)}};
}

std::string verdict(const EvalDifference& all) {
  if (!all.low) return {};
  if (*all.low > 0) return "B has more errors: the interval of the difference lies above zero\n";
  if (*all.high < 0) return "B has fewer errors: the interval of the difference lies below zero\n";
  return "no difference is shown: the interval holds zero\n";
}

}  // namespace

std::optional<double> percent(const ErrorCounts& counts) {
  if (counts.reference == 0) return std::nullopt;
  return 100.0 * static_cast<double>(counts.errors()) / static_cast<double>(counts.reference);
}

std::string signed_text(const std::optional<double>& value) {
  return value ? fmt::format("{:+.2f}", *value) : std::string("–");
}

}  // namespace eval

std::string comparison_json(const EvalReport& a, const EvalReport& b,
                            const EvalComparison& comparison) {
  using namespace eval;
  const auto side = [](const EvalReport& report) {
    return OrderedJson{{"subject", report.subject},
                       {"configuration", OrderedJson::parse(report.configuration, nullptr, false)}};
  };
  OrderedJson json = {
      {"format", "oasr-eval-comparison"},
      {"version", 1},
      {"normalizer", a.options.normalizer},
      {"costs", a.options.costs},
      {"bootstrap",
       {{"resamples", a.options.resamples}, {"seed", a.options.seed}, {"confidence", 0.95}}},
      {"a", side(a)},
      {"b", side(b)},
      {"better", comparison.better},
      {"worse", comparison.worse},
      {"other", comparison.other},
      {"same", comparison.same}};
  auto groups = OrderedJson::array();
  for (const auto& group : comparison.groups) groups.push_back(difference_json(group));
  json["groups"] = std::move(groups);
  json["length_unit"] = comparison.length_unit;
  auto lengths = OrderedJson::array();
  for (const auto& length : comparison.lengths) lengths.push_back(difference_json(length));
  json["lengths"] = std::move(lengths);
  auto changes = OrderedJson::array();
  for (const auto& change : comparison.changes) {
    const auto& before = a.utterances[change.a];
    const auto& after = b.utterances[change.b];
    changes.push_back({{"set", before.set},
                       {"id", before.id},
                       {"errors", change.errors},
                       {"reference", before.normalized_reference},
                       {"a", before.normalized_hypothesis},
                       {"b", after.normalized_hypothesis}});
  }
  json["changes"] = std::move(changes);
  return dump_json(json, 1) + "\n";
}

std::string comparison_text(const EvalReport& a, const EvalReport& b,
                            const EvalComparison& comparison, std::size_t most) {
  using namespace eval;
  auto text = fmt::format(
      "A  {}\nB  {}\nnormalizer {}, costs {}, paired bootstrap {} resamples, seed {}\n\n",
      a.subject, b.subject, a.options.normalizer, a.options.costs, a.options.resamples,
      a.options.seed);
  std::vector<std::vector<std::string>> rows = {
      {"set", "utts", "words", "A WER %", "B WER %", "B − A", "95 %", "p", "sub/del/ins"}};
  const auto add = [&](const std::string& name, const EvalDifference& d) {
    rows.push_back({name, std::to_string(d.utterances), std::to_string(d.a.reference),
                    number_text(percent(d.a)), number_text(percent(d.b)), signed_text(d.difference),
                    interval_text(d.low, d.high), d.p ? fmt::format("{:.4f}", *d.p) : std::string(),
                    counts_text(d.a, d.b)});
  };
  for (const auto& group : comparison.groups) add(group.name, group);
  for (const auto& length : comparison.lengths) add(length.name + " " + comparison.length_unit, length);
  text += table_text(rows) + "\n" + verdict(comparison.groups.front());
  text += fmt::format(
      "utterances of B: {} better, {} worse, {} other text with as many errors, {} same text\n",
      comparison.better, comparison.worse, comparison.other, comparison.same);
  const auto shown =
      most == 0 ? comparison.changes.size() : std::min(most, comparison.changes.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& change = comparison.changes[i];
    const auto& before = a.utterances[change.a];
    const auto& after = b.utterances[change.b];
    text += fmt::format("\n{} {}: {} -> {} errors of {} words\n  ref {}\n  A   {}\n  B   {}\n",
                        before.set, before.id, before.words.errors(), after.words.errors(),
                        before.words.reference, before.normalized_reference,
                        before.normalized_hypothesis, after.normalized_hypothesis);
  }
  if (shown < comparison.changes.size()) {
    text += fmt::format("\n{} more changes: --all-changes, or --output for the JSON\n",
                        comparison.changes.size() - shown);
  }
  return text;
}

}  // namespace oasr
