#include <fmt/format.h>

#include <algorithm>

#include "eval/report.h"
#include "eval/svg.h"
#include "quantize/report_parts.h"
#include "quantize/report_tables.h"

namespace oasr::quantize {
namespace {

using eval::escaped_html;

constexpr std::size_t kWorst = 8;

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --page: #fff; --ink: #1d2430; --soft: #5b6675; --rule: #e4e8ee; --axis: #98a2b3;
  --band: #f5f7fa; --before: #c9a063; --after: #3b78b8; --cumulative: #9aa6b5; --worst: #c8372d; --good: #2b7a4b;
  --wait: #8a6d1a; }
@media (prefers-color-scheme: dark) { :root { --page: #14181f; --ink: #e3e7ed; --soft: #98a3b3; --rule: #2a313c;
  --axis: #566173; --band: #1a2029; --before: #c79a58; --after: #6ba6e0; --cumulative: #6d7888; --worst: #ff7a6e;
  --good: #6cc48d; --wait: #d9b95c; } }
body { font: 15px/1.55 system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif; color: var(--ink);
  background: var(--page); max-width: 1060px; margin: 2em auto; padding: 0 1.2em; }
h1 { font-size: 1.5em; line-height: 1.3; margin: 0 0 .2em; overflow-wrap: anywhere; }
h2 { font-size: 1.15em; margin: 2.4em 0 .4em; } h3 { font-size: 1em; margin: 1.4em 0 .3em; }
p { margin: .4em 0; } p.sub, p.note, footer { color: var(--soft); } p.sub { overflow-wrap: anywhere; }
.verdict { border-left: 5px solid var(--wait); padding: .1em 0 .1em 1em; margin: 1.4em 0; }
.verdict b { color: var(--wait); } .verdict.passed { border-color: var(--good); }
.verdict.passed b { color: var(--good); } .verdict.failed { border-color: var(--worst); }
.verdict.failed b { color: var(--worst); }
.cards { display: flex; flex-wrap: wrap; gap: 10px; margin: 1.2em 0; }
.card { border: 1px solid var(--rule); border-radius: 8px; padding: .5em 1em; }
.card b { display: block; font-size: 1.5em; line-height: 1.3; font-weight: 600; } .card span { color: var(--soft);
  font-size: .9em; }
ul { padding-left: 1.2em; margin: .4em 0; } li { margin: .25em 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; margin: .3em 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .93em; }
th, td { padding: .25em .75em; text-align: right; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; } .l { text-align: left; } th:first-child, td:first-child { padding-left: 0; }
td.w { white-space: normal; min-width: 16em; max-width: 34em; overflow-wrap: anywhere; }
details { margin: .8em 0; } summary { cursor: pointer; color: var(--after); }
.key i { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin: 0 .35em 0 .9em; }
.key i:first-child { margin-left: 0; } .key .b { background: var(--before); } .key .a { background: var(--after); }
.key .c { background: var(--cumulative); } .key .x { background: var(--worst); }
svg { display: block; } svg text { font-size: 12px; fill: var(--ink); } svg text.tick { fill: var(--soft);
  font-size: 11.5px; }
svg text.beyond { paint-order: stroke; stroke: var(--page); stroke-width: 3px; }
svg text.value { font-weight: 700; fill: var(--worst); } svg .grid { stroke: var(--rule); } svg .axis {
  stroke: var(--axis); }
svg .band { fill: var(--band); } svg .hit { fill: transparent; } svg g:hover .hit { fill: var(--rule); }
svg .before { fill: var(--before); } svg .full { fill: none; stroke: var(--before); stroke-width: 2; }
 svg .after, svg .quantized, svg .alone { fill: var(--after); }
svg .peak { fill: var(--ink); } svg .cumulative { fill: var(--cumulative); } svg .worst { fill: var(--worst); }
svg .interval { stroke: var(--after); stroke-width: 1.6; } svg .limit { stroke: var(--worst);
  stroke-dasharray: 4 3; }
footer { margin: 3em 0 1em; font-size: .9em; }
)";

std::string paragraph(std::string_view text, std::string_view kind = "") {
  return fmt::format("<p class=\"{}\">{}</p>", kind, escaped_html(text));
}

std::string section(std::string_view title, const std::string& content) {
  return content.empty() ? content : fmt::format("<h2>{}</h2>", title) + content;
}

std::string details(std::string_view summary, const std::string& content) {
  if (content.empty()) return {};
  return fmt::format("<details><summary>{}</summary>{}</details>", escaped_html(summary), content);
}

std::string items(const std::vector<std::string>& sentences) {
  std::string list;
  for (const auto& sentence : sentences) {
    if (!sentence.empty()) list += "<li>" + escaped_html(sentence) + "</li>";
  }
  return list.empty() ? list : "<ul>" + list + "</ul>";
}

std::string verdict(const Report& report) {
  if (!report.unmet.empty() && (!report.gate || report.gate->passed)) {
    return "<div class=\"verdict failed\"><b>Refused.</b> " + escaped_html(report.unmet) + "</div>";
  }
  if (!report.gate) {
    return "<div class=\"verdict\"><b>Not judged.</b> No gate was asked for, so nobody knows yet "
           "what this did to the words.</div>";
  }
  const auto& gate = *report.gate;
  const auto sentence = gate_sentence(gate);
  const auto colon = sentence.find(':');
  auto html = fmt::format("<div class=\"verdict {}\"><p><b>{}</b>{}</p>", gate.passed ? "passed" : "failed",
                          sentence.substr(0, colon), escaped_html(sentence.substr(colon)));
  // Of a gate that passed it says what the sentences say.
  if (!gate.passed && !gate.verdict.empty()) html += paragraph(gate.verdict);
  if (!report.unmet.empty()) html += paragraph(report.unmet);
  std::vector<std::string> sentences;
  for (const auto& mode : gate.modes) sentences.push_back(mode_sentence(mode));
  sentences.push_back(words_sentence(gate));
  return html + items(sentences) + "</div>";
}

std::string card(const std::string& value, const std::string& what) {
  return fmt::format("<div class=\"card\"><b>{}</b><span>{}</span></div>", escaped_html(value),
                     escaped_html(what));
}

std::string cards(const Report& report) {
  auto html = card(fmt::format("{} of {}", quantized_layers(report).size(), report.layers.size()),
                   "layers quantized");
  if (report.bytes_before > 0) {
    html +=
        card(share_text(static_cast<double>(report.bytes_after), static_cast<double>(report.bytes_before)),
             fmt::format("of the weights' size: {} of {}", mebibytes(report.bytes_after),
                         mebibytes(report.bytes_before)));
  }
  if (report.gate) {
    html += card(fmt::format("{:+.2f}", report.gate->increase),
                 fmt::format("points of word error (limit {:+.2f})", report.gate->limit));
  }
  if (const auto worst = worst_first(report); !worst.empty()) {
    html += card(decibels(worst.front()->alone->snr_db), "signal to error, worst layer");
  }
  return "<div class=\"cards\">" + html + "</div>";
}

// What deserves a look, most important first.
std::string to_look_at(const Report& report) {
  std::vector<std::string> sentences;
  if (const auto worst = worst_first(report); !worst.empty()) {
    const auto& layer = *worst.front();
    sentences.push_back(fmt::format("{} loses most: {} alone{}{}.", layer.path, decibels(layer.alone->snr_db),
                                    layer.cause.empty() ? "" : "; ", layer.cause));
  }
  if (const auto* kept = report.gate ? kept_step(*report.gate) : nullptr) {
    sentences.push_back(fmt::format("The gate put {} back to {}, which costs {} and leaves {:+.2f} points.",
                                    counted(std::ssize(kept->layers), "layer"), report.gate->returned_to,
                                    mebibytes(kept->bytes), kept->increase));
  }
  if (report.gate) {
    for (const auto& mode : report.gate->modes) {
      const auto &full = mode.full, &quantized = mode.quantized;
      const bool more = quantized.empty > full.empty || quantized.repeating > full.repeating ||
                        quantized.failed > full.failed;
      if (more) sentences.push_back(mode.name + ": more texts look wrong, " + symptom_sentence(mode));
    }
  }
  sentences.push_back(smoothing_sentence(report));
  sentences.push_back(key_sentence(report));
  if (report.proof) sentences.push_back(proof_sentence(*report.proof));
  if (report.divergence) sentences.push_back(divergence_sentence(*report.divergence));
  if (!quantized_layers(report).empty()) sentences.push_back(input_sentence(report));
  sentences.insert(sentences.end(), report.notes.begin(), report.notes.end());
  return items(sentences);
}

std::string gate_section(const GateReport& gate) {
  auto html = paragraph(
      fmt::format("Both models on {}, texts normalized by {}.", gate.manifest, gate.normalizer), "note");
  html +=
      "<p class=\"note key\"><i class=\"b\"></i>full precision<i class=\"a\"></i>quantized"
      "<i class=\"x\"></i>limit of the increase (dashed)</p>";
  for (const auto& mode : gate.modes) {
    html += fmt::format("<h3>{}</h3>", escaped_html(mode.name)) + gate_plot(mode, gate.limit);
    html += paragraph("Texts that look wrong, " + symptom_sentence(mode), "note") +
            details("the numbers", group_table(mode));
    html += details(
        fmt::format("utterances that got worse ({}), better ({})", mode.worse.size(), mode.better.size()),
        changed_utterances(mode));
  }
  if (!gate.back_off.empty()) {
    html += "<h3>Back to " + escaped_html(gate.returned_to) + ", step by step</h3>" + back_off_table(gate);
  }
  return html;
}

std::string error_section(const Report& report) {
  auto plot = error_plot(report, kWorst);
  if (plot.empty()) return plot;
  const bool cumulative =
      std::ranges::any_of(report.layers, [](const auto& layer) { return layer.cumulative.has_value(); });
  const bool effect =
      std::ranges::any_of(report.layers, [](const auto& layer) { return layer.effect.has_value(); });
  auto html = paragraph(
                  "What a layer puts out beside what it would put out at full precision, on "
                  "calibration audio: higher is better, 20 dB is an error of a tenth.",
                  "note") +
              "<p class=\"note key\"><i class=\"a\"></i>this layer alone quantized<i class=\"x\"></i>"
              "the worst of them" +
              (cumulative ? "<i class=\"c\"></i>with everything before it</p>" : "</p>");
  html += plot + worst_table(report, kWorst);
  if (effect) {
    html += paragraph(
        "Effect on output: the mean Kullback-Leibler divergence of what the model puts "
        "out when this layer alone is quantized, in nats.",
        "note");
  }
  return html + details("all layers", error_table(report));
}

std::string range_section(const Report& report) {
  auto plots = range_plots(report);
  if (plots.empty()) return plots;
  return paragraph(
             "The greatest absolute value of each input channel: thick from the median "
             "channel to the 99th percentile, thin to the greatest. A layer whose thin line "
             "is long has channels that coarsen the code of all others.",
             "note") +
         plots + details("how each layer was smoothed", smoothing_table(report)) +
         details("how the keys of attention were scaled", key_table(report)) +
         details("static input scales, what every observer would have chosen", observer_table(report));
}

// Layers at full precision are as they were, and a large one would flatten all others.
std::string pair_section(const std::string& plot) {
  if (plot.empty()) return plot;
  return "<p class=\"note key\">The quantized layers: <i class=\"b\"></i>before<i class=\"a\"></i>"
         "after</p>" +
         plot;
}

// A table of layers, folded away if it is long.
std::string folded(const std::string& table, std::size_t count) {
  constexpr std::size_t kOpen = 12;
  return count <= kOpen ? table : details(fmt::format("{} layers", count), table);
}

std::string fallback_section(const Report& report) {
  const auto count = fallback_layers(report).size();
  return count == 0 ? std::string() : folded(fallback_table(report), count);
}

std::string skipped_section(const Report& report) {
  return folded(skipped_table(report), full_precision_layers(report).size());
}

std::string calibration_section(const Report& report) {
  if (!report.calibration) return {};
  const auto& calibration = *report.calibration;
  return paragraph(calibration_sentence(calibration)) + items(calibration.notes) +
         calibration_table(calibration) + details("the utterances", items(calibration.ids));
}

}  // namespace

std::string to_html(const Report& report) {
  auto html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>{0}: quantization</title><style>{1}</style></head>"
      "<body><h1>{0}, quantized with {2}</h1><p class=\"sub\">{3} → {4}</p>",
      escaped_html(report.architecture), kStyle, escaped_html(report.recipe), escaped_html(report.source),
      escaped_html(report.destination));
  html += verdict(report) + cards(report) + paragraph(size_sentence(report)) + to_look_at(report);
  if (report.gate) html += section("Word error", gate_section(*report.gate));
  html += section("Error by layer", error_section(report));
  html += section("Ranges of the inputs", range_section(report));
  html += section("Bytes by layer", pair_section(bytes_plot(report)));
  html += section("Milliseconds by layer", pair_section(time_plot(report)));
  html += section("In another scheme", fallback_section(report));
  html += section("Kept at full precision", skipped_section(report));
  html += section("Calibration", calibration_section(report));
  html +=
      section("Every layer", details(fmt::format("{} layers", report.layers.size()), layer_table(report)));
  html += section("How it was made", provenance_table(report));
  return html + fmt::format("<footer>Made by {}.</footer></body></html>\n", escaped_html(report.tool));
}

}  // namespace oasr::quantize
