// Globs, and which known name an unknown word or a glob without a match was meant to be.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace oasr {

// True if `path` matches a glob: * any run of characters (dots too), ? one, [a-c5] one of a set,
// [!abc] one outside it. A [ without its ] stands for itself.
bool matches_glob(std::string_view pattern, std::string_view path);

// The name that a glob (or a plain word) comes nearest to, counted in letters to insert, delete or
// replace; * costs nothing, and leaving out a beginning or an end of the name costs one letter, so
// that "encoder.*" finds "model.encoder.fc1". Nothing if more than a third of the letters differ.
std::optional<std::string_view> nearest(std::string_view glob,
                                        std::span<const std::string_view> names);

// "did you mean int8_w8a8? ", or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> names);

}  // namespace oasr
