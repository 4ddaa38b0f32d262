// The tokens of WeNet's compute-wer with --char=1, joined with spaces.
#include "text/normalizer/steps.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace oasr::normalizer {
namespace {

// Punctuation that stands alone is no token. Within or behind a Latin word it belongs to the word.
constexpr View kPunctuation = U"!,?、。！，；？：「」︰『』《》";

bool is_left_out(char32_t point) {
  return kPunctuation.find(point) != View::npos || is_space(point) || category(point) == "Zs" ||
         category(point) == "Cn";
}

// A Latin word goes on to white space or to the first character that is not ASCII; "<unk>" ends
// with its bracket.
std::size_t end_of_token(View text, std::size_t at) {
  if (category(text[at]) == "Lo") return at + 1;
  const char32_t last = text[at] == '<' ? '>' : ' ';
  std::size_t end = at + 1;
  while (end < text.size() && text[end] < 0x80 && !is_space(text[end]) && text[end] != last) ++end;
  return end < text.size() && text[end] == '>' ? end + 1 : end;
}

// "<unk>" is nothing.
Text without_tags(View token) {
  Text out;
  bool inside = false;
  for (const char32_t point : token) {
    if (point == '<') inside = true;
    if (!inside) out += point;
    if (point == '>') inside = false;
  }
  return out;
}

}  // namespace

Text chinese_chars(View text) {
  Text out;
  for (std::size_t at = 0; at < text.size();) {
    if (is_left_out(text[at])) {
      ++at;
      continue;
    }
    const auto end = end_of_token(text, at);
    const Text token = without_tags(upper(text.substr(at, end - at)));
    if (!token.empty()) out += (out.empty() ? U"" : U" ") + token;
    at = end;
  }
  return out;
}

}  // namespace oasr::normalizer
