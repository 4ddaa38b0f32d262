#include "eval/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/unicode.h"
#include "text/utf8.h"

namespace oasr::eval {
namespace {

double top_of(const std::vector<Bar>& bars) {
  double top = 1;
  for (const auto& bar : bars) top = std::max({top, bar.value.value_or(0), bar.high.value_or(0)});
  const double step = tick_step(top);
  return std::ceil(top / step) * step;
}

std::string number(double value) { return fmt::format("{:g}", std::round(value * 1000) / 1000); }

std::string title_of(const Bar& bar) {
  auto text =
      bar.name + ": " + (bar.value ? fmt::format("{:.2f} %", *bar.value) : "no reference words");
  if (bar.low && bar.high) text += fmt::format(" [{:.2f}, {:.2f}]", *bar.low, *bar.high);
  if (!bar.note.empty()) text += ", " + bar.note;
  return "<title>" + escaped_html(text) + "</title>";
}

}  // namespace

double tick_step(double top) {
  const double power = std::pow(10.0, std::floor(std::log10(std::max(top, 1e-6) / 5)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    if (top / (factor * power) <= 6) return factor * power;
  }
  return 10 * power;
}

std::string svg_line(double x1, double y1, double x2, double y2, const char* kind) {
  return fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>",
                     kind, x1, y1, x2, y2);
}

std::string svg_label(double x, double y, const char* anchor, std::string_view text,
                      const char* kind) {
  return fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>",
                     kind, x, y, anchor, escaped_html(text));
}

std::string shortened(const std::string& text, std::size_t most) {
  auto points = to_utf32(text);
  if (points.size() <= most) return text;
  points.resize(most - 1);
  return to_utf8(points + U"…");
}

std::string escaped_html(std::string_view text) {
  std::string out;
  for (const char c : to_valid_utf8(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        const bool is_control = static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t';
        is_control ? out += kReplacementCharacter : out += c;
    }
  }
  return out;
}

std::string column_chart(const std::vector<Bar>& bars, const std::string& axis,
                         const std::string& below) {
  constexpr double kLeft = 52, kTop = 16, kHeight = 220, kStep = 92, kBar = 46;
  const double width = kLeft + kStep * static_cast<double>(bars.size()) + 12;
  const double top = top_of(bars), step = tick_step(top);
  const auto y = [&](double value) { return kTop + kHeight * (1 - value / top); };
  auto svg = fmt::format(
      "<svg viewBox=\"0 0 {0:.0f} 292\" width=\"{0:.0f}\" height=\"292\" role=\"img\">", width);
  for (double tick = 0; tick <= top * 1.0001; tick += step) {
    svg += svg_line(kLeft, y(tick), width - 8, y(tick), tick == 0 ? "axis" : "grid");
    svg += svg_label(kLeft - 6, y(tick) + 4, "end", number(tick), "tick");
  }
  svg += fmt::format(
      "<text class=\"tick\" transform=\"translate(14 {:.0f}) rotate(-90)\" "
      "text-anchor=\"middle\">{}</text>",
      kTop + kHeight / 2, escaped_html(axis));
  double center = kLeft + kStep / 2;
  for (const auto& bar : bars) {
    svg += "<g>" + title_of(bar);
    if (bar.value) {
      svg += fmt::format(
          "<rect class=\"bar\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{:.1f}\"/>",
          center - kBar / 2, y(*bar.value), kBar, kTop + kHeight - y(*bar.value));
      svg += svg_label(center - kBar / 2 - 4, y(*bar.value) - 4, "start",
                       fmt::format("{:.1f}", *bar.value), "value");
    }
    if (bar.low && bar.high) {
      svg += svg_line(center + 12, y(*bar.low), center + 12, y(*bar.high), "interval");
      svg += svg_line(center + 7, y(*bar.low), center + 17, y(*bar.low), "interval");
      svg += svg_line(center + 7, y(*bar.high), center + 17, y(*bar.high), "interval");
    }
    svg += svg_label(center, kTop + kHeight + 17, "middle", shortened(bar.name, 14));
    svg += svg_label(center, kTop + kHeight + 32, "middle", bar.note, "tick") + "</g>";
    center += kStep;
  }
  return svg + svg_label((kLeft + width) / 2, kTop + kHeight + 52, "middle", below, "tick") +
         "</svg>";
}

std::string dot_chart(const std::vector<Bar>& bars, const std::string& axis) {
  constexpr double kLeft = 190, kWidth = 470, kRow = 21, kTop = 26, kRight = 150;
  const double height = kTop + kRow * static_cast<double>(bars.size()) + 12;
  const double top = top_of(bars), step = tick_step(top);
  const auto x = [&](double value) { return kLeft + kWidth * value / top; };
  auto svg = fmt::format(
      "<svg viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\">",
      kLeft + kWidth + kRight, height);
  for (double tick = 0; tick <= top * 1.0001; tick += step) {
    svg += svg_line(x(tick), kTop - 6, x(tick), height - 8, tick == 0 ? "axis" : "grid");
    svg += svg_label(x(tick), kTop - 11, "middle", number(tick), "tick");
  }
  svg += svg_label(kLeft - 12, kTop - 11, "end", axis, "tick");
  double y = kTop + kRow / 2;
  for (const auto& bar : bars) {
    svg += "<g>" + title_of(bar) + svg_label(kLeft - 12, y + 4, "end", shortened(bar.name, 26));
    if (bar.low && bar.high) svg += svg_line(x(*bar.low), y, x(*bar.high), y, "interval");
    if (bar.value)
      svg += fmt::format("<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"/>",
                         x(*bar.value), y);
    svg +=
        svg_label(kLeft + kWidth + 14, y + 4, "start",
                  (bar.value ? fmt::format("{:.1f}", *bar.value) : "–") + " · " + bar.note, "tick");
    svg += "</g>";
    y += kRow;
  }
  return svg + "</svg>";
}

}  // namespace oasr::eval
