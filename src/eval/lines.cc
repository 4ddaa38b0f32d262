#include "eval/lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/fs.h"
#include "text/utf8.h"

namespace oasr::eval {
namespace {

constexpr std::size_t kShown = 5;

// The first byte (from 1) that is not UTF-8, or a zero byte; 0: all are.
std::size_t bad_byte(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto front = utf8_front(text.substr(at));
    if (!front.valid || text[at] == '\0') return at + 1;
    at += front.size;
  }
  return 0;
}

}  // namespace

void Problems::add(std::size_t line, std::string what) {
  found_.push_back(fmt::format("line {}: {}", line, what));
}

Status Problems::status(std::string remedy) const {
  if (found_.empty()) return {};
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, found_.size()); ++i) {
    text += (i > 0 ? "; " : "") + found_[i];
  }
  if (found_.size() > kShown) text += fmt::format("; and {} lines more", found_.size() - kShown);
  return unexpected(ErrorCode::invalid_argument, std::move(text), file_, std::move(remedy));
}

std::vector<Line> split_lines(std::string_view text, Problems& problems) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::vector<Line> lines;
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    problems.add(1, "is UTF-16, not UTF-8");
    return lines;
  }
  for (std::size_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (const auto byte = bad_byte(line); byte > 0) {
      problems.add(number, fmt::format("byte {} is not UTF-8", byte));
    } else if (!strip(line).empty()) {
      lines.push_back({number, line});
    }
  }
  return lines;
}

Result<std::string> read_lines_file(const std::string& path) {
  return read_text_file(path, std::size_t{1} << 30);
}

std::string some_of(const std::vector<std::string>& names, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i) {
    text += fmt::format("{}'{}'", i > 0 ? ", " : "", names[i]);
  }
  if (names.size() > most) text += fmt::format(" and {} more", names.size() - most);
  return text;
}

}  // namespace oasr::eval
