#include "text/vocabulary.h"

namespace oasr {

Vocabulary::Vocabulary(std::size_t count, std::string origin)
    : end_(2 * static_cast<std::int64_t>(count) + 4096), origin_(std::move(origin)) {
  tokens.reserve(count + 2048);
}

Status Vocabulary::add(std::int64_t id, std::string bytes, bool is_special) {
  if (id < 0 || id >= end_) {
    return error("token id " + std::to_string(id) + " is not in 0 to " + std::to_string(end_ - 1));
  }
  const auto at = static_cast<std::size_t>(id);
  if (at >= tokens.size()) {
    tokens.resize(at + 1);
    special.resize(at + 1);
  }
  if (!tokens[at].empty() && tokens[at] != bytes) {
    return error("two tokens have the id " + std::to_string(id));
  }
  tokens[at] = std::move(bytes);
  special[at] = special[at] || is_special;
  return {};
}

Status Vocabulary::add_special(std::int64_t id, const std::string& name) {
  const auto at = static_cast<std::size_t>(id);
  if (id >= 0 && at < tokens.size() && !tokens[at].empty() && tokens[at] != name) {
    if (!special[at]) {
      return error("id " + std::to_string(id) + " is an ordinary token, but should be " + name);
    }
    second_names.emplace_back(name, static_cast<TokenId>(id));
    return {};
  }
  return add(id, name, true);
}

Unexpected Vocabulary::error(std::string what, ErrorCode code) const {
  return unexpected(code, std::move(what), origin_);
}

bool has_special_form(std::string_view token) {
  return token.size() > 4 && token.starts_with("<|") && token.ends_with("|>");
}

}  // namespace oasr
