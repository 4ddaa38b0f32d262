#include "text/normalizer/steps.h"

#include "text/unicode.h"
#include "text/utf8.h"

namespace oasr::normalizer {
namespace {

// The end of the bracket that opens at `at`, or 0 if none does. `closing` are the characters that
// close it; a round bracket has to hold something.
std::size_t end_of_bracket(View text, std::size_t at, View opening, View closing, bool filled) {
  if (opening.find(text[at]) == View::npos) return 0;
  const auto end = text.find_first_of(closing, at + 1);
  if (end == View::npos || (filled && end == at + 1)) return 0;
  return end + 1;
}

Text without(View text, View opening, View closing, bool filled) {
  Text out;
  // After the last closing character no bracket can end: a text of opening ones is read once.
  const auto last = text.find_last_of(closing);
  for (std::size_t at = 0; at < text.size();) {
    const bool may_end = last != View::npos && at < last;
    if (const auto end = may_end ? end_of_bracket(text, at, opening, closing, filled) : 0;
        end > 0) {
      at = end;
    } else {
      out += text[at++];
    }
  }
  return out;
}

}  // namespace

bool is_boundary(View text, std::size_t at) {
  const bool before = at > 0 && is_word_character(text[at - 1]);
  const bool after = at < text.size() && is_word_character(text[at]);
  return before != after;
}

std::vector<Text> split(View text) {
  std::vector<Text> words;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && !is_space(text[end])) ++end;
    if (end > at) words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

Text without_brackets(View text) {
  return without(without(text, U"<[", U">]", false), U"(", U")", true);
}

std::size_t spaces_at(View text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && is_space(text[end])) ++end;
  return end - at;
}

Text with_single_spaces(View text) {
  Text out;
  for (std::size_t at = 0; at < text.size();) {
    const auto spaces = spaces_at(text, at);
    out += spaces > 0 ? U' ' : text[at];
    at += spaces > 0 ? spaces : 1;
  }
  return out;
}

bool is_ascii_digit(char32_t point) { return point >= '0' && point <= '9'; }

bool is_symbol(char32_t point) {
  const char kind = category(point)[0];
  return kind == 'M' || kind == 'S' || kind == 'P';
}

}  // namespace oasr::normalizer
