#include "checkpoint/token_lines.h"

#include <optional>

namespace oasr {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

bool stands_for_itself(unsigned char byte) { return byte >= 0x20 && byte < 0x7F && byte != '\\'; }

// The token of one line without its end; nothing if it is spelled in another way than the writer's.
std::optional<std::string> read_line(std::string_view line) {
  std::string token;
  while (!line.empty()) {
    if (line.front() != '\\') {
      if (!stands_for_itself(static_cast<unsigned char>(line.front()))) return std::nullopt;
      token += line.front();
      line.remove_prefix(1);
    } else if (line.starts_with("\\\\")) {
      token += '\\';
      line.remove_prefix(2);
    } else {
      if (!line.starts_with("\\x") || line.size() < 4) return std::nullopt;
      const auto high = kHexDigits.find(line[2]), low = kHexDigits.find(line[3]);
      if (high == kHexDigits.npos || low == kHexDigits.npos) return std::nullopt;
      const auto byte = static_cast<unsigned char>(high * 16 + low);
      if (stands_for_itself(byte) || byte == '\\') return std::nullopt;
      token += static_cast<char>(byte);
      line.remove_prefix(4);
    }
  }
  return token;
}

}  // namespace

std::string write_token_lines(std::span<const std::string> tokens) {
  std::string text;
  for (const auto& token : tokens) {
    for (const char c : token) {
      const auto byte = static_cast<unsigned char>(c);
      if (stands_for_itself(byte)) {
        text += c;
      } else if (c == '\\') {
        text += "\\\\";
      } else {
        text += {'\\', 'x', kHexDigits[byte >> 4], kHexDigits[byte & 15]};
      }
    }
    text += '\n';
  }
  return text;
}

Result<std::vector<std::string>> read_token_lines(std::string_view text) {
  std::vector<std::string> tokens;
  while (!text.empty()) {
    const auto end = text.find('\n');
    auto token = end == text.npos ? std::nullopt : read_line(text.substr(0, end));
    if (!token) {
      return unexpected(
          ErrorCode::bad_checkpoint,
          "line " + std::to_string(tokens.size() + 1) +
              (end == text.npos ? " has no end" : " is not a token as oasr writes it"));
    }
    tokens.push_back(std::move(*token));
    text.remove_prefix(end + 1);
  }
  return tokens;
}

}  // namespace oasr
