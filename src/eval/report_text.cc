#include <fmt/format.h>

#include <algorithm>

#include "eval/counting.h"
#include "eval/lines.h"
#include "eval/report.h"
#include "text/unicode.h"

namespace oasr {
namespace eval {
namespace {

constexpr std::size_t kWorstShown = 5, kConfusionsShown = 8, kSpeakersShown = 40;

// Columns on a terminal: wide East Asian characters take two, marks none.
std::size_t columns(std::string_view text) {
  std::size_t width = 0;
  for (const char32_t c : to_utf32(text)) {
    const bool wide = (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) ||
                      (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) ||
                      (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
                      (c >= 0x20000 && c <= 0x3FFFD);
    width += category(c) == "Mn" ? 0 : wide ? 2 : 1;
  }
  return width;
}

std::string padded(std::string_view text, std::size_t width, bool to_right) {
  const auto used = columns(text);
  const std::string space(width > used ? width - used : 0, ' ');
  return to_right ? space + std::string(text) : std::string(text) + space;
}

std::vector<std::string> group_row(const EvalGroup& group) {
  const auto& w = group.words;
  return {group.name,
          std::to_string(group.utterances),
          std::to_string(w.counts.reference),
          number_text(w.percent),
          interval_text(w.low, w.high),
          std::to_string(w.counts.substitutions),
          std::to_string(w.counts.deletions),
          std::to_string(w.counts.insertions),
          number_text(group.characters.percent),
          interval_text(group.characters.low, group.characters.high)};
}

std::string group_table(const std::string& title, const std::vector<EvalGroup>& groups,
                        std::size_t most) {
  if (groups.empty()) return {};
  std::vector<std::vector<std::string>> rows = {
      {title, "utts", "words", "WER %", "95 %", "sub", "del", "ins", "CER %", "95 %"}};
  for (std::size_t i = 0; i < std::min(most, groups.size()); ++i)
    rows.push_back(group_row(groups[i]));
  auto text = table_text(rows);
  if (groups.size() > most) text += fmt::format("and {} more in the JSON\n", groups.size() - most);
  return text + "\n";
}

std::string confusion_list(const char* title, const std::vector<EvalConfusion>& confusions) {
  if (confusions.empty()) return {};
  std::string text = fmt::format("{:<14}", title);
  for (std::size_t i = 0; i < std::min(kConfusionsShown, confusions.size()); ++i) {
    const auto& c = confusions[i];
    const auto* between = c.reference.empty() || c.hypothesis.empty() ? "" : " → ";
    text += fmt::format("{}{}{}{} ({})", i > 0 ? ", " : "", c.reference, between, c.hypothesis,
                        c.count);
  }
  return text + "\n";
}

std::string head(const EvalReport& report) {
  auto text = fmt::format("{}\nnormalizer {}, costs {}, bootstrap {} resamples, seed {}\n",
                          report.subject, report.options.normalizer, report.options.costs,
                          report.options.resamples, report.options.seed);
  if (report.audio_seconds > 0) {
    text += fmt::format(
        "{:.1f} s of audio in {:.1f} s: real-time factor {:.4f}, peak memory {:.0f} MiB\n",
        report.audio_seconds, report.wall_seconds, report.wall_seconds / report.audio_seconds,
        report.peak_mib);
  }
  return text;
}

std::string tail(const EvalReport& report) {
  std::string text;
  std::vector<std::string> missing, failed;
  for (const auto& u : report.utterances) {
    if (u.failure == "missing") missing.push_back(u.id);
    if (!u.failure.empty() && u.failure != "missing") failed.push_back(u.id + ": " + u.failure);
  }
  if (!missing.empty()) {
    text += fmt::format("{} without hypothesis, counted as deleted: {}\n", missing.size(),
                        some_of(missing, 20));
  }
  if (!failed.empty()) {
    text += fmt::format("{} failed, counted as deleted: {}\n", failed.size(), some_of(failed, 20));
  }
  if (!report.extra.empty()) {
    text += fmt::format("{} hypotheses without reference, not counted: {}\n", report.extra.size(),
                        some_of(report.extra, 20));
  }
  for (const auto& note : report.notes) text += "note: " + note + "\n";
  return text.empty() ? text : "\n" + text;
}

}  // namespace

std::string number_text(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f}", *value) : std::string("–");
}

std::string interval_text(const std::optional<double>& low, const std::optional<double>& high) {
  return low && high ? fmt::format("[{:.2f}, {:.2f}]", *low, *high) : std::string();
}

std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += (i > 0 ? "  " : "") + padded(row[i], widths[i], i > 0);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string alignment_text(const EvalUtterance& utterance, const std::string& costs,
                           std::size_t width) {
  const auto kind = parse_enum(edit_costs_names(), costs);
  const auto words = align_words(utterance, kind.value_or(EditCosts::unit));
  std::string text, above, below;
  std::size_t used = 0;
  const auto flush = [&] {
    if (used == 0) return;
    text += "  ref " + above + "\n  hyp " + below + "\n";
    above.clear(), below.clear();
    used = 0;
  };
  for (const auto& word : words) {
    const auto size = std::max(columns(word.reference), columns(word.hypothesis));
    if (used + size + 1 > width) flush();
    const auto shown = [&](std::string_view side) {
      return side.empty() ? std::string(size, '*') : padded(side, size, false);
    };
    above += " " + shown(word.reference);
    below += " " + (word.op == EditOp::match ? std::string(size, ' ') : shown(word.hypothesis));
    used += size + 1;
  }
  flush();
  return text;
}

std::vector<std::size_t> worst_first(const EvalReport& report, std::size_t most) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < report.utterances.size(); ++i) {
    if (report.utterances[i].words.errors() > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    const auto& a = report.utterances[i].words;
    const auto& b = report.utterances[j].words;
    return a.errors() != b.errors() ? a.errors() > b.errors() : a.reference < b.reference;
  });
  if (order.size() > most) order.resize(most);
  return order;
}

}  // namespace eval

std::string eval_text(const EvalReport& report) {
  using namespace eval;
  auto text = head(report) + "\n";
  auto sets = report.sets;
  if (sets.size() != 1) sets.push_back(report.total);
  text += group_table("set", sets, sets.size());
  text += group_table("length, " + report.length_unit, report.lengths, report.lengths.size());
  text += group_table("speaker", report.speakers, kSpeakersShown);
  text += fmt::format("{} of {} utterances have a word error\n", report.total.with_errors,
                      report.total.utterances);
  text += confusion_list("substitutions", report.substitutions);
  text += confusion_list("deletions", report.deletions);
  text += confusion_list("insertions", report.insertions);
  for (const auto at : worst_first(report, kWorstShown)) {
    const auto& u = report.utterances[at];
    text +=
        fmt::format("\n{} {}: {} of {} words\n", u.set, u.id, u.words.errors(), u.words.reference);
    text += alignment_text(u, report.options.costs, 90);
  }
  return text + tail(report);
}

}  // namespace oasr
