// JSON: nlohmann's type under a short name, parsed without exceptions and with a depth limit.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/result.h"

namespace oasr {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

// `where` names the file in the error. Refuses nesting deeper than 64 and invalid UTF-8.
Result<Json> parse_json(std::string_view text, std::string_view where);

// True if a key appears twice in one object of a text that parse_json takes; the parsed value keeps
// only the last one.
bool has_duplicate_keys(std::string_view text);

// Serialises with invalid UTF-8 replaced by U+FFFD, so that the output is always valid JSON.
std::string dump_json(const OrderedJson& value, int indent = -1);

}  // namespace oasr
