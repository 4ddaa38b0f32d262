// Tokens as a text file: the form in which native checkpoints keep a list of arbitrary bytes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace oasr {

// One token a line in the order of ids, each line ended by '\n'. Printable ASCII stands for itself
// but for '\', which is "\\"; any other byte is "\x" and two small hexadecimal digits. The text is
// pure ASCII, and every list of tokens has exactly one.
std::string write_token_lines(std::span<const std::string> tokens);

// The reverse; write_token_lines gives back the same text. bad_checkpoint, with the number of the
// line: any other spelling, a last line without its end.
Result<std::vector<std::string>> read_token_lines(std::string_view text);

}  // namespace oasr
