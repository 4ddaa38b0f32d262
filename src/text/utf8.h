// UTF-8: what is well formed, and what to show for what is not.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace oasr {

// The front of a text.
struct Utf8Sequence {
  std::size_t size = 0;     // bytes: of the character, or of the ill-formed maximal subpart
  bool valid = false;       // a whole well-formed character
  bool unfinished = false;  // the text ends inside a character that could still become valid
};

// Looks at the front of `bytes`, which must not be empty. Overlong forms, surrogates and values
// above U+10FFFF are ill-formed (Unicode 15, table 3-7).
Utf8Sequence utf8_front(std::string_view bytes);

// The code point of a valid sequence.
char32_t utf8_decode(std::string_view sequence);

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// `bytes` with ill-formed sequences replaced by U+FFFD, one per maximal subpart.
std::string to_valid_utf8(std::string_view bytes);

// White space as Python's str.isspace() has it.
bool is_space(char32_t point);

// Without Unicode white space at both ends, as Python's str.strip(). Borrowed from `valid_utf8`.
std::string_view strip(std::string_view valid_utf8);

// Joins token bytes into valid UTF-8: holds back an unfinished character until it is complete.
// The pieces, joined, are to_valid_utf8 of all bytes, whatever their division. Not thread-safe.
class Utf8Stream {
 public:
  // Complete characters so far; ill-formed sequences become U+FFFD.
  std::string push(std::string_view bytes);
  // What is left, an unfinished character as U+FFFD.
  std::string finish();

 private:
  std::string pending_;
};

}  // namespace oasr
