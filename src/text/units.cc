#include "text/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <unordered_map>

#include "text/utf8.h"

namespace oasr {
namespace {

constexpr std::array<std::string_view, 14> kSpecial = {
    "<blank>", "<blk>", "<unk>", "<sos/eos>", "<sos>", "<eos>", "<s>",
    "</s>",    "<pad>", "<eps>", "<UNK>",     "<SOS>", "<EOS>", "<PAD>"};

std::string_view without_line_end(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) {
    line.remove_suffix(1);
  }
  return line;
}

Unexpected bad_line(std::size_t number, std::string what, const std::string& origin) {
  return unexpected(ErrorCode::bad_checkpoint, std::move(what),
                    origin + ", line " + std::to_string(number),
                    "each line is a token, a blank and its id");
}

struct Entry {
  std::string_view token;
  std::int64_t id = 0;
};

Result<Entry> read_line(std::string_view line, std::size_t number, const std::string& origin) {
  const std::size_t blank = line.find_last_of(" \t");
  if (blank == std::string_view::npos) return bad_line(number, "there is no id", origin);
  const std::string_view digits = line.substr(blank + 1);
  Entry entry;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), entry.id);
  if (error != std::errc() || end != digits.data() + digits.size() || entry.id < 0) {
    return bad_line(number, "'" + to_valid_utf8(digits.substr(0, 40)) + "' is no id", origin);
  }
  entry.token = without_line_end(line.substr(0, blank));
  const std::size_t first = entry.token.find_first_not_of(" \t");
  if (first == std::string_view::npos) return bad_line(number, "there is no token", origin);
  entry.token.remove_prefix(first);
  if (to_valid_utf8(entry.token) != entry.token) {
    return bad_line(number, "the token is not UTF-8", origin);
  }
  return entry;
}

}  // namespace

Result<std::vector<std::string>> read_units(std::string_view text, const std::string& origin) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  const auto count = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  const auto end_of_ids = static_cast<std::int64_t>(2 * count + 4096);
  std::vector<std::string> units;
  std::vector<std::size_t> line_of;  // by id; 0: none
  std::unordered_map<std::string_view, std::size_t> seen;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t newline = std::min(text.find('\n'), text.size());
    const std::string_view line = without_line_end(text.substr(0, newline));
    text.remove_prefix(std::min(newline + 1, text.size()));
    if (line.empty()) continue;
    const Entry entry = TRY(read_line(line, number, origin));
    if (entry.id >= end_of_ids) {
      return bad_line(number,
                      "the id " + std::to_string(entry.id) + " is too large for " +
                          std::to_string(count) + " lines",
                      origin);
    }
    const auto id = static_cast<std::size_t>(entry.id);
    if (id >= units.size()) {
      units.resize(id + 1);
      line_of.resize(id + 1);
    }
    if (line_of[id] != 0) {
      return bad_line(
          number,
          "the id " + std::to_string(id) + " is that of line " + std::to_string(line_of[id]),
          origin);
    }
    const auto [place, fresh] = seen.try_emplace(entry.token, number);
    if (!fresh) {
      return bad_line(number,
                      "the token '" + std::string(entry.token) + "' is that of line " +
                          std::to_string(place->second),
                      origin);
    }
    units[id] = entry.token;
    line_of[id] = number;
  }
  if (units.empty()) {
    return unexpected(ErrorCode::bad_checkpoint, "the table has no tokens", origin);
  }
  return units;
}

bool is_special_unit(std::string_view unit) {
  return std::find(kSpecial.begin(), kSpecial.end(), unit) != kSpecial.end();
}

int unit_byte(std::string_view unit) {
  if (unit.size() != 6 || !unit.starts_with("<0x") || unit.back() != '>') return -1;
  int value = -1;
  const auto [end, error] = std::from_chars(unit.data() + 3, unit.data() + 5, value, 16);
  return error == std::errc() && end == unit.data() + 5 ? value : -1;
}

}  // namespace oasr
