#include "base/json.h"

#include <set>
#include <string>
#include <vector>

namespace oasr {
namespace {

constexpr int kMaxDepth = 64;

// The parser is not recursive, but the value's destructor is: depth is bounded before parsing.
bool too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view where) {
  if (too_deep(text)) {
    return unexpected(ErrorCode::bad_checkpoint, "JSON nested deeper than 64 levels", std::string(where));
  }
  auto value = Json::parse(text.begin(), text.end(), nullptr, false);
  if (value.is_discarded()) {
    return unexpected(ErrorCode::bad_checkpoint, "is not valid JSON", std::string(where));
  }
  return value;
}

bool has_duplicate_keys(std::string_view text) {
  std::vector<std::set<std::string>> open;
  bool found = false;
  const auto watch = [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key) {
      found |= !open.back().insert(value.get<std::string>()).second;
    }
    return true;
  };
  const auto parsed = Json::parse(text.begin(), text.end(), watch, false);
  return found || parsed.is_discarded();
}

std::string dump_json(const OrderedJson& value, int indent) {
  return value.dump(indent, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace oasr
