// The steps that normalizers are made of, on code points.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace oasr::normalizer {

using Text = std::u32string;
using View = std::u32string_view;

// \b of Python's re at position `at`: a word character on one side only.
bool is_boundary(View text, std::size_t at);

// The pieces that white space separates, as Python's str.split().
std::vector<Text> split(View text);

// Without "<…>", "[…]" (either kind may close the other) and "(…)".
Text without_brackets(View text);

// Every run of white space becomes one space.
Text with_single_spaces(View text);

// The length of the white space at `at`.
std::size_t spaces_at(View text, std::size_t at);

bool is_ascii_digit(char32_t point);

// The steps of openai-whisper's EnglishNumberNormalizer: "twenty one dollars" becomes "$21".
Text standardize_numbers(View text);

Text basic(View text);
Text english(View text);
Text chinese_chars(View text);

// A mark, symbol or punctuation.
bool is_symbol(char32_t point);

}  // namespace oasr::normalizer
