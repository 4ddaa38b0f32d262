// Symbol tables (units.txt, tokens.txt) of WeNet and icefall. Internal to text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace oasr {

// Tokens as they are spelt, by id; "" is an id that the table leaves out.
// Lines of a token, blanks or tabs, and an id; a byte-order mark, CRLF and empty lines are passed
// over. Ids are in any order and may have gaps, so that they stay below 2 × lines + 4096.
// Errors (bad_checkpoint), with the line: no id, a second token or id, invalid UTF-8; no tokens.
Result<std::vector<std::string>> read_units(std::string_view text, const std::string& origin);

// Whether a unit is one of the names for what is no text: "<blank>", "<unk>", "<sos/eos>" and their
// kin.
bool is_special_unit(std::string_view unit);

// The byte of a unit "<0xE4>" (byte fallback), -1 for others.
int unit_byte(std::string_view unit);

}  // namespace oasr
