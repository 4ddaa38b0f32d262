#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "eval/counting.h"
#include "eval/lines.h"
#include "eval/report.h"
#include "eval/svg.h"
#include "oasr/version.h"

namespace oasr {
namespace eval {
namespace {

constexpr std::size_t kWorst = 25, kConfusions = 12, kSpeakers = 80;

constexpr std::string_view kStyle = R"(
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif; color: #1d2430; background: #fff;
  max-width: 1020px; margin: 2.2em auto; padding: 0 1.4em; }
h1 { font-size: 1.5em; margin: 0 0 .1em; overflow-wrap: anywhere; } h2 { font-size: 1.12em; margin: 2.2em 0 .5em; }
p.sub { color: #5b6675; margin: 0 0 1.4em; } p.note { color: #5b6675; margin: .2em 0 .8em; }
.cards { display: flex; flex-wrap: wrap; gap: 12px; } .card { border: 1px solid #dfe3ea; border-radius: 8px;
  padding: .6em 1.1em; } .card b { display: block; font-size: 1.7em; line-height: 1.25; font-weight: 600; }
.card span { color: #5b6675; font-size: .9em; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; } th, td { padding: .28em .8em; text-align: right;
  border-bottom: 1px solid #e8ebf0; white-space: nowrap; } th { font-weight: 600; color: #5b6675; }
th:first-child, td:first-child { text-align: left; padding-left: 0; } tr.total td { font-weight: 600; }
.columns { display: flex; flex-wrap: wrap; gap: 0 48px; }
svg text { font-size: 12px; fill: #1d2430; } svg text.tick { fill: #5b6675; font-size: 11.5px; }
svg text.value { font-weight: 600; } svg .grid { stroke: #e8ebf0; } svg .axis { stroke: #98a2b3; }
svg .bar { fill: #7aa7d9; } svg .dot { fill: #2f6fb3; } svg .interval { stroke: #1f4e80; stroke-width: 1.5; }
.utterance { margin: 1.1em 0; } .utterance h3 { font-size: .95em; margin: 0 0 .3em; font-weight: 600; }
.utterance h3 span { font-weight: 400; color: #5b6675; }
.align { line-height: 1.35; } .align span { display: inline-block; vertical-align: top; margin: 0 .28em .35em 0;
  text-align: center; white-space: pre; } .align i { display: block; font-style: normal; min-height: 1.35em; }
.s i + i { background: #fde7c8; color: #7a4b00; } .d i { background: #fbdcdc; color: #8c1d1d; }
.d i + i, .n i:first-child { background: none; } .n i + i { background: #d9efdc; color: #1c6129; }
.align i { padding: 0 .18em; border-radius: 3px; } .m i + i { color: transparent; user-select: none; }
.key span { border-radius: 3px; padding: .05em .45em; margin-right: .5em; } .key .s { background: #fde7c8; }
.key .d { background: #fbdcdc; } .key .n { background: #d9efdc; }
pre { background: #f6f7f9; padding: .8em 1em; border-radius: 6px; overflow-x: auto; font-size: 12.5px; }
li { margin: .15em 0; } footer { color: #5b6675; margin: 3em 0 1em; font-size: .9em; }
)";

std::string percent_text(const ErrorRate& rate) {
  return rate.percent ? fmt::format("{:.2f} %", *rate.percent) : std::string("–");
}

std::string card(const std::string& value, const std::string& what) {
  return fmt::format("<div class=\"card\"><b>{}</b><span>{}</span></div>", escaped_html(value),
                     escaped_html(what));
}

std::string cards(const EvalReport& report) {
  const auto& t = report.total;
  auto html =
      "<div class=\"cards\">" +
      card(percent_text(t.words), "word error " + interval_text(t.words.low, t.words.high)) +
      card(percent_text(t.characters),
           "character error " + interval_text(t.characters.low, t.characters.high)) +
      card(fmt::format("{} / {} / {}", t.words.counts.substitutions, t.words.counts.deletions,
                       t.words.counts.insertions),
           "substituted, deleted, inserted words") +
      card(fmt::format("{} of {}", t.with_errors, t.utterances), "utterances with an error");
  if (report.audio_seconds > 0) {
    html += card(fmt::format("{:.3f}", report.wall_seconds / report.audio_seconds),
                 "real-time factor") +
            card(fmt::format("{:.0f} MiB", report.peak_mib), "peak memory");
  }
  return html + "</div>";
}

std::string group_row(const EvalGroup& group, bool total) {
  const auto& w = group.words;
  return fmt::format(
      "<tr{}><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</"
      "td>"
      "<td>{}</td><td>{}</td></tr>",
      total ? " class=\"total\"" : "", escaped_html(group.name), group.utterances,
      w.counts.reference, number_text(w.percent), interval_text(w.low, w.high),
      w.counts.substitutions, w.counts.deletions, w.counts.insertions,
      number_text(group.characters.percent),
      interval_text(group.characters.low, group.characters.high));
}

std::string group_table(const std::string& title, const std::vector<EvalGroup>& groups,
                        const EvalGroup* total) {
  auto html = fmt::format(
      "<div class=\"scroll\"><table><tr><th>{}</th><th>utterances</th><th>words</th><th>WER %</th>"
      "<th>95 %</th><th>sub</th><th>del</th><th>ins</th><th>CER %</th><th>95 %</th></tr>",
      escaped_html(title));
  for (const auto& group : groups) html += group_row(group, false);
  if (total != nullptr) html += group_row(*total, true);
  return html + "</table></div>";
}

std::vector<Bar> bars_of(const std::vector<EvalGroup>& groups) {
  std::vector<Bar> bars;
  for (const auto& group : groups) {
    bars.push_back({group.name, fmt::format("{} utts", group.utterances), group.words.percent,
                    group.words.low, group.words.high});
  }
  return bars;
}

std::string speakers_section(const EvalReport& report) {
  if (report.speakers.empty()) return {};
  auto speakers = report.speakers;
  std::stable_sort(speakers.begin(), speakers.end(), [](const auto& a, const auto& b) {
    return a.words.percent.value_or(-1) > b.words.percent.value_or(-1);
  });
  const auto left_out = speakers.size() - std::min(speakers.size(), kSpeakers);
  speakers.resize(speakers.size() - left_out);
  for (auto& group : speakers) {
    if (group.name.empty()) group.name = "(not known)";
  }
  auto html = "<h2>By speaker</h2><div class=\"scroll\">" +
              dot_chart(bars_of(speakers), "word error %") + "</div>";
  if (left_out > 0)
    html += fmt::format("<p class=\"note\">{} with lower rates are in the JSON.</p>", left_out);
  return html;
}

// How many utterances have which word error.
std::string histogram(const EvalReport& report) {
  constexpr double kEnds[] = {0, 5, 10, 20, 30, 50, 100};
  std::vector<std::int64_t> counts(std::size(kEnds) + 1);
  for (const auto& u : report.utterances) {
    if (u.words.reference == 0) continue;
    const double rate =
        100.0 * static_cast<double>(u.words.errors()) / static_cast<double>(u.words.reference);
    ++counts[static_cast<std::size_t>(std::lower_bound(std::begin(kEnds), std::end(kEnds), rate) -
                                      kEnds)];
  }
  std::vector<Bar> bars;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto name = i == 0                  ? std::string("0 %")
                      : i == std::size(kEnds) ? std::string("over 100 %")
                                              : fmt::format("{:g}–{:g} %", kEnds[i - 1], kEnds[i]);
    const double share =
        100.0 * static_cast<double>(counts[i]) / static_cast<double>(report.utterances.size());
    bars.push_back({name, fmt::format("{} utts", counts[i]), share, std::nullopt, std::nullopt});
  }
  return column_chart(bars, "utterances %", "word error of the utterance");
}

std::string confusion_table(const std::string& title,
                            const std::vector<EvalConfusion>& confusions) {
  if (confusions.empty()) return {};
  auto html = fmt::format("<table><tr><th>{}</th><th>times</th></tr>", title);
  for (std::size_t i = 0; i < std::min(kConfusions, confusions.size()); ++i) {
    const auto& c = confusions[i];
    const auto* between = c.reference.empty() || c.hypothesis.empty() ? "" : " → ";
    html += fmt::format("<tr><td>{}{}{}</td><td>{}</td></tr>", escaped_html(c.reference), between,
                        escaped_html(c.hypothesis), c.count);
  }
  return html + "</table>";
}

std::string aligned(const EvalUtterance& utterance, EditCosts costs) {
  const auto words = align_words(utterance, costs);
  if (words.empty()) {
    return fmt::format("<p>{}</p><p>{}</p>", escaped_html(utterance.normalized_reference),
                       escaped_html(utterance.normalized_hypothesis));
  }
  std::string html = "<div class=\"align\">";
  for (const auto& word : words) {
    constexpr const char* kKinds[] = {"m", "s", "d", "n"};  // in the order of EditOp
    html += fmt::format("<span class=\"{}\"><i>{}</i><i>{}</i></span>",
                        kKinds[static_cast<int>(word.op)], escaped_html(word.reference),
                        escaped_html(word.hypothesis));
  }
  return html + "</div>";
}

std::string worst_section(const EvalReport& report) {
  const auto worst = worst_first(report, kWorst);
  if (worst.empty()) return "<h2>Utterances</h2><p>None has a word error.</p>";
  const auto costs = parse_enum(edit_costs_names(), report.options.costs).value_or(EditCosts::unit);
  auto html = fmt::format(
      "<h2>The {} utterances with most errors</h2><p class=\"note key\">Above what was said, below "
      "what was recognized instead: <span class=\"s\">substituted</span><span class=\"d\">deleted"
      "</span><span class=\"n\">inserted</span></p>",
      worst.size());
  for (const auto at : worst) {
    const auto& u = report.utterances[at];
    auto about = fmt::format("{} of {} words wrong", u.words.errors(), u.words.reference);
    if (u.seconds > 0) about += fmt::format(", {:.1f} s", u.seconds);
    if (!u.speaker.empty()) about += ", speaker " + u.speaker;
    if (!u.failure.empty()) about += ", no hypothesis: " + u.failure;
    html += fmt::format("<div class=\"utterance\"><h3>{} <span>{}: {}</span></h3>{}</div>",
                        escaped_html(u.id), escaped_html(u.set), escaped_html(about),
                        aligned(u, costs));
  }
  return html;
}

std::string notes_section(const EvalReport& report) {
  std::string list;
  for (const auto& u : report.utterances) {
    if (!u.failure.empty()) {
      list += fmt::format("<li>{} {}: {}, counted as deleted</li>", escaped_html(u.set),
                          escaped_html(u.id),
                          escaped_html(u.failure == "missing" ? "no hypothesis" : u.failure));
    }
  }
  for (const auto& id : report.extra) {
    list +=
        fmt::format("<li>{}: a hypothesis without a reference, not counted</li>", escaped_html(id));
  }
  for (const auto& note : report.notes) list += "<li>" + escaped_html(note) + "</li>";
  return list.empty() ? list : "<h2>Notes</h2><ul>" + list + "</ul>";
}

}  // namespace
}  // namespace eval

std::string eval_html(const EvalReport& report) {
  using namespace eval;
  const auto title = escaped_html(report.subject);
  auto html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>{0}: word error</title><style>{1}</style></head><body>"
      "<h1>{0}</h1><p class=\"sub\">{2} utterances, {3} words; normalizer {4}</p>",
      title, kStyle, report.total.utterances, report.total.words.counts.reference,
      report.options.normalizer);
  html += cards(report);
  html += "<h2>By set</h2>" +
          group_table("set", report.sets, report.sets.size() > 1 ? &report.total : nullptr);
  if (report.sets.size() > 1) {
    html += "<div class=\"scroll\">" + dot_chart(bars_of(report.sets), "word error %") + "</div>";
  }
  const bool timed = report.length_unit == "s";
  html += "<h2>By length</h2><div class=\"scroll\">" +
          column_chart(bars_of(report.lengths), "word error %",
                       timed ? "seconds of audio" : "words of the reference") +
          "</div>" + group_table(timed ? "seconds" : "words", report.lengths, nullptr);
  html += speakers_section(report);
  html += "<h2>Utterances by their error</h2><div class=\"scroll\">" + histogram(report) + "</div>";
  html += "<h2>Most frequent errors</h2><div class=\"columns\">" +
          confusion_table("substituted", report.substitutions) +
          confusion_table("deleted", report.deletions) +
          confusion_table("inserted", report.insertions) + "</div>";
  html += worst_section(report) + notes_section(report);
  const auto configuration = OrderedJson::parse(report.configuration, nullptr, false);
  html += "<h2>Configuration</h2><pre>" + escaped_html(dump_json(configuration, 2)) + "</pre>";
  html += fmt::format(
      "<footer>Intervals: 95 %, bootstrap over utterances ({} resamples, seed {}); costs {}. Made "
      "by "
      "oasr {}.</footer></body></html>\n",
      report.options.resamples, report.options.seed, report.options.costs, version());
  return html;
}

}  // namespace oasr
