// Word error by group: both models to the left, the difference with its interval to the right.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "eval/report.h"
#include "eval/svg.h"
#include "quantize/report_parts.h"

namespace oasr::quantize {
namespace {

using eval::escaped_html;
using eval::svg_label;
using eval::svg_line;

constexpr double kName = 150, kRates = 330, kGap = 46, kDifferences = 330, kRow = 26, kTopMargin = 44;
constexpr double kLeast = 0.1;  // points that are always shown

// A stretch of x from `low` to `high`.
struct Panel {
  double left, width, low, high;
  double x(double value) const {
    return left + width * std::clamp((value - low) / (high - low), 0.0, 1.0);
  }
  // Grid lines down to `bottom`, with `title` above them.
  std::string grid(double bottom, std::string_view title) const {
    auto svg = svg_label(left + width / 2, 14, "middle", title, "tick");
    const double step = eval::tick_step(high - low);
    const auto first = static_cast<int>(std::ceil(low / step - 1e-9));
    for (int tick = first; tick * step <= high + step * 1e-3; ++tick) {
      const double at = x(tick * step);
      svg += svg_line(at, kTopMargin - 10, at, bottom, tick == 0 ? "axis" : "grid");
      svg += svg_label(at, kTopMargin - 16, "middle", fmt::format("{:g}", tick * step), "tick");
    }
    return svg;
  }
};

std::string dot(double x, double y, double radius, const char* kind) {
  return fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"/>", kind, x, y,
                     radius);
}

std::string note_of(const EvalDifference& group) {
  const auto counts = [](const ErrorCounts& c) {
    return fmt::format("{} substituted, {} deleted, {} inserted", c.substitutions, c.deletions,
                       c.insertions);
  };
  return fmt::format(
      "{}: {} utterances, {} words\nfull precision {} % ({})\nquantized {} % ({})\n"
      "difference {} points {}",
      group.name, group.utterances, group.a.reference, eval::number_text(eval::percent(group.a)),
      counts(group.a), eval::number_text(eval::percent(group.b)), counts(group.b),
      eval::signed_text(group.difference), eval::interval_text(group.low, group.high));
}

std::string row(const EvalDifference& group, double y, const Panel& rates,
                const Panel& differences) {
  auto svg = fmt::format(
      "<g><title>{}</title><rect class=\"hit\" x=\"0\" y=\"{:.1f}\" "
      "width=\"{:.0f}\" height=\"{:.0f}\"/>",
      escaped_html(note_of(group)), y - kRow / 2, differences.left + differences.width, kRow);
  svg += svg_label(kName - 14, y + 4, "end", eval::shortened(group.name, 20));
  const auto full = eval::percent(group.a), quantized = eval::percent(group.b);
  if (full && quantized) {
    svg += svg_line(rates.x(*full), y, rates.x(*quantized), y, "interval");
    svg += dot(rates.x(*full), y, 5.5, "full") + dot(rates.x(*quantized), y, 3.5, "quantized");
  }
  if (group.low && group.high) {
    svg += svg_line(differences.x(*group.low), y, differences.x(*group.high), y, "interval");
  }
  if (group.difference) svg += dot(differences.x(*group.difference), y, 3.5, "quantized");
  return svg + "</g>";
}

}  // namespace

std::string gate_plot(const GateMode& mode, double limit) {
  if (mode.groups.empty()) return {};
  // Small groups have intervals so wide that those of all would shrink to dots: they end at the
  // edge.
  const auto& all = mode.groups.front();
  const double far =
      4 * std::max({limit, std::abs(all.low.value_or(0)), all.high.value_or(0), kLeast});
  double top = 1, low = 0, high = std::max(limit, kLeast);
  for (const auto& group : mode.groups) {
    for (const auto& counts : {group.a, group.b}) {
      top = std::max(top, eval::percent(counts).value_or(0));
    }
    for (const auto& value : {group.low, group.difference, group.high}) {
      low = std::max(std::min(low, value.value_or(0)), -far);
      high = std::min(std::max(high, value.value_or(0)), far);
    }
  }
  const double bottom = kTopMargin + kRow * static_cast<double>(mode.groups.size());
  const double margin = 0.05 * (high - low);
  const Panel rates{kName, kRates, 0, top * 1.05};
  const Panel differences{kName + kRates + kGap, kDifferences, low - margin, high + margin};
  const double width = differences.left + differences.width + 16;
  auto svg = fmt::format(
      "<div class=\"scroll\"><svg viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" role=\"img\" aria-label=\"word error by group\">",
      width, bottom + 6);
  svg += rates.grid(bottom, "word error %") +
         differences.grid(bottom, "difference, points, and its 95 % interval");
  svg += svg_line(differences.x(limit), kTopMargin - 10, differences.x(limit), bottom, "limit");
  double y = kTopMargin + kRow / 2 - 4;
  for (const auto& group : mode.groups) {
    svg += row(group, y, rates, differences);
    y += kRow;
  }
  return svg + "</svg></div>";
}

}  // namespace oasr::quantize
