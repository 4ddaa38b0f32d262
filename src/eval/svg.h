// Plots as SVG, inline in a page.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace oasr::eval {

// Text with & < > " escaped, valid in HTML and SVG; characters that XML does not allow become
// U+FFFD.
std::string escaped_html(std::string_view text);

// A step of 1, 2 or 5 times a power of ten that gives at most six ticks up to `top`.
double tick_step(double top);

// Elements of a drawing; `kind` is their class in the page's style.
std::string svg_line(double x1, double y1, double x2, double y2, const char* kind);
std::string svg_label(double x, double y, const char* anchor, std::string_view text,
                      const char* kind = "");

// The first `most` characters, with an ellipsis for the rest.
std::string shortened(const std::string& text, std::size_t most);

struct Bar {
  std::string name, note;  // under the bar, and what its tooltip says
  std::optional<double> value, low, high;
};

// Vertical bars with the ends of their intervals, an axis from 0 in percent, names below.
std::string column_chart(const std::vector<Bar>& bars, const std::string& axis,
                         const std::string& below);

// Horizontal dots with their intervals, one a row, names to the left.
std::string dot_chart(const std::vector<Bar>& bars, const std::string& axis);

}  // namespace oasr::eval
