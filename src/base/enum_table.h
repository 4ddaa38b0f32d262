// Names of enum values: one constexpr table an enum, one parse and one name for all.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/check.h"

namespace oasr {

template <class E>
struct EnumName {
  E value;
  std::string_view name;
};

// The name of `value` in its table.
template <class E>
std::string_view enum_name(std::span<const EnumName<E>> table, E value) {
  for (const auto& row : table) {
    if (row.value == value) return row.name;
  }
  CHECK(false, "an enum value without a name");
}

// The value called `name`, or nothing.
template <class E>
std::optional<E> parse_enum(std::span<const EnumName<E>> table, std::string_view name) {
  for (const auto& row : table) {
    if (row.name == name) return row.value;
  }
  return std::nullopt;
}

// "float32, float16, bfloat16": for messages.
template <class E>
std::string enum_names(std::span<const EnumName<E>> table) {
  std::string text;
  for (const auto& row : table) {
    if (!text.empty()) text += ", ";
    text += row.name;
  }
  return text;
}

}  // namespace oasr
