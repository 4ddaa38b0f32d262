// GPT-2's printable spelling of bytes, in which vocabularies of byte-level BPE are written.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace oasr {

// The bytes that `token` spells: "Ġthe" -> " the". Nothing if a character is not of the alphabet
// (the token then stands for itself).
std::optional<std::string> from_byte_alphabet(std::string_view token);

// The spelling of `bytes`, the inverse.
std::string to_byte_alphabet(std::string_view bytes);

}  // namespace oasr
