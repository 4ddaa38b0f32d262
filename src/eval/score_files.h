// Files of references and hypotheses: one text an utterance, with its id.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace oasr::eval {

enum class TextFormat : std::uint8_t { kaldi, tsv, trn, jsonl };

struct TextRow {
  std::size_t line = 0;
  std::string set, id, text, speaker;  // set and speaker of jsonl only
  double seconds = 0;                  // of jsonl only
};

enum class TextSide : std::uint8_t { reference, hypothesis };

// "auto": by the name's ending, else by the lines.
Result<TextFormat> find_text_format(const std::string& name, const std::string& path,
                                    std::string_view text);

// Every line is looked at. Errors: invalid_argument, with the numbers of lines that are not of the
// format, whose id was there before, or that are not UTF-8.
Result<std::vector<TextRow>> parse_text_file(std::string_view text, const std::string& path,
                                             TextFormat format, TextSide side);

}  // namespace oasr::eval
