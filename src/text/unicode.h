// Texts as code points: categories, case and normalization forms (utf8proc's tables, Unicode 14 or
// later).
#pragma once

#include <string>
#include <string_view>

namespace oasr {

// Ill-formed UTF-8 becomes U+FFFD, one per maximal subpart.
std::u32string to_utf32(std::string_view utf8);

// `text` holds code points that to_utf32 or the functions below gave.
std::string to_utf8(std::u32string_view text);

// "Lu", "Nd", …: two letters; "Cn" for what is not assigned.
std::string_view category(char32_t point);

// A letter, a number or the underscore: \w of Python's re.
bool is_word_character(char32_t point);

// A decimal digit of any script: \d of Python's re.
bool is_decimal(char32_t point);

// The value of a decimal digit, 0 to 9.
int decimal_value(char32_t point);

// Python's str.lower(): İ becomes two code points, a final Σ becomes ς.
std::u32string lower(std::u32string_view text);

// By code point, but ß becomes SS.
std::u32string upper(std::u32string_view text);

// Normalization forms KD and KC.
std::u32string nfkd(std::u32string_view text);
std::u32string nfkc(std::u32string_view text);

}  // namespace oasr
