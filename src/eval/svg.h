// Plots as SVG, inline in a page.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace oasr::eval {

// Text with & < > " escaped, valid in HTML and SVG; characters that XML does not allow become
// U+FFFD.
std::string escaped_html(std::string_view text);

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
