#include "decode/word_times.h"

#include <algorithm>
#include <string_view>

#include "text/characters.h"
#include "text/utf8.h"

namespace oasr::decode {
namespace {

// A character of the text and its time. One that several tokens spell (byte pieces) belongs to the
// last of them.
struct Letter {
  std::string_view text;
  char32_t point = 0;
  std::size_t token = 0;
  double start = 0, end = 0;
};

// The tokens' bytes, joined, and where each token begins in them.
struct Spelling {
  std::string text;  // valid UTF-8
  std::vector<std::size_t> begins;
};

// Ill-formed bytes become U+FFFD one by one, so that offsets stay known.
Spelling spell(std::span<const CtcToken> tokens, const Tokenizer& tokenizer) {
  Spelling spelling;
  Utf8Stream stream;
  for (const CtcToken& token : tokens) {
    spelling.begins.push_back(spelling.text.size());
    if (!tokenizer.is_special(token.id)) {
      spelling.text += stream.push(tokenizer.token_bytes(token.id));
    }
  }
  spelling.text += stream.finish();
  return spelling;
}

// Gives the characters that a token spells equal shares of its time.
void share_time(std::span<Letter> letters, const TokenSpan& span) {
  const auto visible = std::count_if(letters.begin(), letters.end(),
                                     [](const Letter& letter) { return !is_space(letter.point); });
  const double share = (span.end - span.start) / static_cast<double>(std::max<long>(visible, 1));
  long at = 0;
  for (Letter& letter : letters) {
    letter.start = span.start + share * static_cast<double>(at);
    if (!is_space(letter.point)) ++at;
    letter.end = at == visible ? span.end : span.start + share * static_cast<double>(at);
  }
}

std::vector<Letter> letters_of(const Spelling& spelling, std::span<const TokenSpan> spans) {
  std::vector<Letter> letters;
  const std::string_view text = spelling.text;
  for (std::size_t token = 0; token < spans.size(); ++token) {
    const std::size_t end = token + 1 < spans.size() ? spelling.begins[token + 1] : text.size();
    const std::size_t first = letters.size();
    for (std::size_t at = spelling.begins[token]; at < end;) {
      const std::string_view character = text.substr(at, utf8_front(text.substr(at)).size);
      letters.push_back({character, utf8_decode(character), token, 0, 0});
      at += character.size();
    }
    share_time(std::span(letters).subspan(first), spans[token]);
  }
  return letters;
}

double mean_confidence(std::span<const CtcToken> tokens) {
  double sum = 0;
  for (const CtcToken& token : tokens) sum += token.confidence;
  return sum / static_cast<double>(tokens.size());
}

}  // namespace

std::vector<TokenSpan> token_spans(std::span<const CtcToken> tokens, const TokenClock& clock) {
  std::vector<TokenSpan> spans;
  spans.reserve(tokens.size());
  const auto seconds = [&](int frame) { return clock.offset + frame * clock.seconds_per_frame; };
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const int first = i == 0 ? tokens[i].frame : tokens[i - 1].frame + 1;
    TokenSpan span{seconds(first), seconds(tokens[i].frame + 1)};
    if (clock.longest_token) span.start = std::max(span.start, span.end - *clock.longest_token);
    spans.push_back(span);
  }
  return spans;
}

std::vector<TimedWord> word_times(std::span<const CtcToken> tokens, const Tokenizer& tokenizer,
                                  const TokenClock& clock) {
  const auto spans = token_spans(tokens, clock);
  const Spelling spelling = spell(tokens, tokenizer);
  std::vector<TimedWord> words;
  bool space = false, open = false;  // before this letter; a word that goes on
  for (const Letter& letter : letters_of(spelling, spans)) {
    if (is_space(letter.point)) {
      space = true;
      open = false;
      continue;
    }
    const bool alone = is_written_without_spaces(letter.point);
    if (!open || alone) {
      TimedWord word;
      if (space) word.text = " ";
      word.start = letter.start;
      word.first_token = letter.token;
      words.push_back(word);
    }
    TimedWord& word = words.back();
    word.text += letter.text;
    word.end = letter.end;
    word.token_count = letter.token + 1 - word.first_token;
    open = !alone;
    space = false;
  }
  for (TimedWord& word : words) {
    word.confidence = mean_confidence(tokens.subspan(word.first_token, word.token_count));
  }
  return words;
}

}  // namespace oasr::decode
