#include "text/tiktoken.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/check.h"

// The rank files, put into the library by the assembler: no generated source, nothing to compile.
asm(".pushsection .rodata\n"
    ".global oasr_gpt2_ranks, oasr_multilingual_ranks, oasr_ranks_end\n"
    ".hidden oasr_gpt2_ranks, oasr_multilingual_ranks, oasr_ranks_end\n"
    "oasr_gpt2_ranks: .incbin \"" OASR_ASSETS_DIR
    "/whisper/gpt2.tiktoken\"\n"
    "oasr_multilingual_ranks: .incbin \"" OASR_ASSETS_DIR
    "/whisper/multilingual.tiktoken\"\n"
    "oasr_ranks_end: .byte 0\n"
    ".popsection\n");
extern "C" {
[[gnu::visibility("hidden")]] extern const char oasr_gpt2_ranks[];
[[gnu::visibility("hidden")]] extern const char oasr_multilingual_ranks[];
[[gnu::visibility("hidden")]] extern const char oasr_ranks_end[];
}

namespace oasr {
namespace {

constexpr std::array<std::int8_t, 256> make_base64() {
  std::array<std::int8_t, 256> value{};
  value.fill(-1);
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t i = 0; i < kDigits.size(); ++i) {
    value[static_cast<unsigned char>(kDigits[i])] = static_cast<std::int8_t>(i);
  }
  return value;
}

// The bytes of base64 text, with or without padding ("=" alone is nothing, as in Whisper's file).
std::optional<std::string> decode_base64(std::string_view text) {
  static constexpr auto kValue = make_base64();
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  unsigned bits = 0, count = 0;
  for (const char c : text) {
    const int value = kValue[static_cast<unsigned char>(c)];
    if (value < 0) return std::nullopt;
    bits = (bits << 6) | static_cast<unsigned>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>((bits >> count) & 0xFF);
    }
  }
  return bytes;
}

}  // namespace

Result<std::vector<std::string>> parse_tiktoken(std::string_view text, std::string_view where) {
  std::vector<std::string> tokens;
  std::vector<bool> seen;
  std::size_t lines = 0;
  for (const char c : text) lines += c == '\n';
  if (!text.empty() && !text.ends_with('\n')) ++lines;
  tokens.resize(lines);
  seen.resize(lines);
  for (std::size_t line_number = 1; !text.empty(); ++line_number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto bad = [&](const char* why) {
      return unexpected(ErrorCode::bad_checkpoint,
                        "line " + std::to_string(line_number) + " of the token ranks " + why,
                        std::string(where));
    };
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) return bad("is not a token and a rank");
    std::size_t rank = 0;
    const auto [end, error] =
        std::from_chars(line.data() + space + 1, line.data() + line.size(), rank);
    if (error != std::errc() || end != line.data() + line.size())
      return bad("has no number for a rank");
    if (rank >= lines || seen[rank]) return bad("has a rank that is out of range or used before");
    auto bytes = decode_base64(line.substr(0, space));
    if (!bytes) return bad("is not base64");
    tokens[rank] = std::move(*bytes);
    seen[rank] = true;
  }
  return tokens;
}

TokenizerSource bundled_whisper_ranks(bool multilingual) {
  const char* const begin = multilingual ? oasr_multilingual_ranks : oasr_gpt2_ranks;
  const char* const end = multilingual ? oasr_ranks_end : oasr_multilingual_ranks;
  auto tokens = parse_tiktoken({begin, static_cast<std::size_t>(end - begin)}, "bundled ranks");
  CHECK(tokens, "the bundled ranks are part of the library");
  TokenizerSource source;
  source.kind = "ranks";
  source.tokens = std::move(*tokens);
  source.origin = multilingual ? "bundled multilingual.tiktoken" : "bundled gpt2.tiktoken";
  return source;
}

}  // namespace oasr
