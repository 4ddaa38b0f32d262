// openai-whisper's EnglishTextNormalizer (MIT, Copyright (c) 2022 OpenAI; release 20250625): its
// steps in its order, so that word errors can be compared with published ones.
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/check.h"
#include "base/json.h"
#include "text/normalizer/steps.h"
#include "text/unicode.h"
#include "text/utf8.h"

// The spelling list, put into the library by the assembler.
asm(".pushsection .rodata\n"
    ".global oasr_english_spelling, oasr_english_spelling_end\n"
    ".hidden oasr_english_spelling, oasr_english_spelling_end\n"
    "oasr_english_spelling: .incbin \"" OASR_ASSETS_DIR
    "/whisper/english_spelling.json\"\n"
    "oasr_english_spelling_end: .byte 0\n"
    ".popsection\n");
extern "C" {
[[gnu::visibility("hidden")]] extern const char oasr_english_spelling[];
[[gnu::visibility("hidden")]] extern const char oasr_english_spelling_end[];
}

namespace oasr::normalizer {
namespace {

struct Rule {
  bool whole;  // a word boundary before it, too; there is always one behind
  View from, to;
};

constexpr Rule kHesitations[] = {{true, U"hmm", U""}, {true, U"mm", U""}, {true, U"mhm", U""},
                                 {true, U"mmm", U""}, {true, U"uh", U""}, {true, U"um", U""}};

constexpr Rule kContractions[] = {{true, U"won't", U"will not"},
                                  {true, U"can't", U"can not"},
                                  {true, U"let's", U"let us"},
                                  {true, U"ain't", U"aint"},
                                  {true, U"y'all", U"you all"},
                                  {true, U"wanna", U"want to"},
                                  {true, U"gotta", U"got to"},
                                  {true, U"gonna", U"going to"},
                                  {true, U"i'ma", U"i am going to"},
                                  {true, U"imma", U"i am going to"},
                                  {true, U"woulda", U"would have"},
                                  {true, U"coulda", U"could have"},
                                  {true, U"shoulda", U"should have"},
                                  {true, U"ma'am", U"madam"},
                                  // titles
                                  {true, U"mr", U"mister "},
                                  {true, U"mrs", U"missus "},
                                  {true, U"st", U"saint "},
                                  {true, U"dr", U"doctor "},
                                  {true, U"prof", U"professor "},
                                  {true, U"capt", U"captain "},
                                  {true, U"gov", U"governor "},
                                  {true, U"ald", U"alderman "},
                                  {true, U"gen", U"general "},
                                  {true, U"sen", U"senator "},
                                  {true, U"rep", U"representative "},
                                  {true, U"pres", U"president "},
                                  {true, U"rev", U"reverend "},
                                  {true, U"hon", U"honorable "},
                                  {true, U"asst", U"assistant "},
                                  {true, U"assoc", U"associate "},
                                  {true, U"lt", U"lieutenant "},
                                  {true, U"col", U"colonel "},
                                  {true, U"jr", U"junior "},
                                  {true, U"sr", U"senior "},
                                  {true, U"esq", U"esquire "},
                                  // perfect tenses
                                  {false, U"'d been", U" had been"},
                                  {false, U"'s been", U" has been"},
                                  {false, U"'d gone", U" had gone"},
                                  {false, U"'s gone", U" has gone"},
                                  {false, U"'d done", U" had done"},
                                  {false, U"'s got", U" has got"},
                                  // the rest
                                  {false, U"n't", U" not"},
                                  {false, U"'re", U" are"},
                                  {false, U"'s", U" is"},
                                  {false, U"'d", U" would"},
                                  {false, U"'ll", U" will"},
                                  {false, U"'t", U" not"},
                                  {false, U"'ve", U" have"},
                                  {false, U"'m", U" am"}};

bool matches(View text, std::size_t at, const Rule& rule) {
  return text.substr(at).starts_with(rule.from) && (!rule.whole || is_boundary(text, at)) &&
         is_boundary(text, at + rule.from.size());
}

Text replaced(Text text, const Rule& rule) {
  auto found = text.find(rule.from);
  if (found == Text::npos) return text;
  Text out;
  std::size_t done = 0;
  for (; found != Text::npos; found = text.find(rule.from, found)) {
    if (!matches(text, found, rule)) {
      ++found;
      continue;
    }
    out.append(text, done, found - done).append(rule.to);
    done = found += rule.from.size();
  }
  return out.append(text, done, Text::npos);
}

// The hesitations are one pattern of alternatives: one pass, the first that fits.
Text without_hesitations(View text) {
  Text out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t skip = 0;
    for (const auto& rule : kHesitations) {
      if (skip == 0 && matches(text, at, rule)) skip = rule.from.size();
    }
    if (skip == 0) out += text[at++];
    at += skip;
  }
  return out;
}

// No white space before an apostrophe.
Text with_joined_apostrophes(View text) {
  Text out;
  for (std::size_t at = 0; at < text.size();) {
    const auto spaces = spaces_at(text, at);
    const bool before = at + spaces < text.size() && text[at + spaces] == '\'';
    if (spaces > 0 && !before) out.append(text.substr(at, spaces));
    if (spaces == 0) out += text[at];
    at += spaces > 0 ? spaces : 1;
  }
  return out;
}

// "1,000" as "1000"; the digit behind a comma is used up, as in a replacement by a pattern.
Text without_digit_commas(View text) {
  Text out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    out += text[at];
    if (at + 2 < text.size() && is_decimal(text[at]) && text[at + 1] == ',' &&
        is_decimal(text[at + 2])) {
      out += text[at + 2];
      at += 2;
    }
  }
  return out;
}

// Each of `symbols` that no digit follows becomes a space; what follows is used up. `at_end`: the
// end of the text counts, too.
Text without_lone(View text, View symbols, bool at_end) {
  Text out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool last = at + 1 == text.size();
    if (symbols.find(text[at]) == View::npos || (last ? !at_end : is_ascii_digit(text[at + 1]))) {
      out += text[at];
      continue;
    }
    out += ' ';
    if (!last) out += text[++at];
  }
  return out;
}

// A percent sign that follows no digit becomes a space.
Text without_lone_percent(View text) {
  Text out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    out += text[at];
    if (!is_ascii_digit(text[at]) && at + 1 < text.size() && text[at + 1] == '%') {
      out += ' ';
      ++at;
    }
  }
  return out;
}

// Letters that no decomposition makes ASCII.
View plain_letters(char32_t point) {
  switch (point) {
    case U'œ':
      return U"oe";
    case U'Œ':
      return U"OE";
    case U'ø':
      return U"o";
    case U'Ø':
      return U"O";
    case U'æ':
      return U"ae";
    case U'Æ':
      return U"AE";
    case U'ß':
      return U"ss";
    case U'ẞ':
      return U"SS";
    case U'đ':
    case U'ð':
      return U"d";
    case U'Đ':
    case U'Ð':
      return U"D";
    case U'þ':
    case U'Þ':
      return U"th";
    case U'ł':
      return U"l";
    case U'Ł':
      return U"L";
    default:
      return {};
  }
}

Text without_symbols_and_diacritics(View text, View keep) {
  Text out;
  for (const char32_t point : nfkd(text)) {
    if (keep.find(point) != View::npos) {
      out += point;
    } else if (const auto plain = plain_letters(point); !plain.empty()) {
      out += plain;
    } else if (category(point) != "Mn") {
      out += is_symbol(point) ? U' ' : point;
    }
  }
  return out;
}

using Spellings = std::unordered_map<Text, Text>;

const Spellings& spellings() {
  static const Spellings kMap = [] {
    const auto json = parse_json({oasr_english_spelling, oasr_english_spelling_end}, "spellings");
    CHECK(json && json->is_object(), "the spelling list is part of the library");
    Spellings map;
    for (const auto& [from, to] : json->items()) {
      map.emplace(to_utf32(from), to_utf32(to.get<std::string>()));
    }
    return map;
  }();
  return kMap;
}

// American spelling, word by word.
Text with_american_spelling(View text) {
  Text out;
  for (const auto& word : split(text)) {
    if (!out.empty()) out += ' ';
    const auto found = spellings().find(word);
    out += found == spellings().end() ? word : found->second;
  }
  return out;
}

}  // namespace

Text english(View input) {
  Text text = with_joined_apostrophes(without_hesitations(without_brackets(lower(input))));
  for (const auto& rule : kContractions) text = replaced(std::move(text), rule);
  text = without_lone(without_digit_commas(text), U".", true);
  text = without_symbols_and_diacritics(text, U".%$¢€£");
  text = with_american_spelling(standardize_numbers(text));
  text = without_lone_percent(without_lone(text, U".$¢€£", false));
  return with_single_spaces(text);
}

}  // namespace oasr::normalizer
