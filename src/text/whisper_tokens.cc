// Whisper's languages and special tokens.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>

#include "text/tokenizer.h"

namespace oasr {
namespace {

using Row = std::pair<std::string_view, std::string_view>;

constexpr std::array kLanguages = std::to_array<Row>({
    {"en", "english"},        {"zh", "chinese"},     {"de", "german"},        {"es", "spanish"},
    {"ru", "russian"},        {"ko", "korean"},      {"fr", "french"},        {"ja", "japanese"},
    {"pt", "portuguese"},     {"tr", "turkish"},     {"pl", "polish"},        {"ca", "catalan"},
    {"nl", "dutch"},          {"ar", "arabic"},      {"sv", "swedish"},       {"it", "italian"},
    {"id", "indonesian"},     {"hi", "hindi"},       {"fi", "finnish"},       {"vi", "vietnamese"},
    {"he", "hebrew"},         {"uk", "ukrainian"},   {"el", "greek"},         {"ms", "malay"},
    {"cs", "czech"},          {"ro", "romanian"},    {"da", "danish"},        {"hu", "hungarian"},
    {"ta", "tamil"},          {"no", "norwegian"},   {"th", "thai"},          {"ur", "urdu"},
    {"hr", "croatian"},       {"bg", "bulgarian"},   {"lt", "lithuanian"},    {"la", "latin"},
    {"mi", "maori"},          {"ml", "malayalam"},   {"cy", "welsh"},         {"sk", "slovak"},
    {"te", "telugu"},         {"fa", "persian"},     {"lv", "latvian"},       {"bn", "bengali"},
    {"sr", "serbian"},        {"az", "azerbaijani"}, {"sl", "slovenian"},     {"kn", "kannada"},
    {"et", "estonian"},       {"mk", "macedonian"},  {"br", "breton"},        {"eu", "basque"},
    {"is", "icelandic"},      {"hy", "armenian"},    {"ne", "nepali"},        {"mn", "mongolian"},
    {"bs", "bosnian"},        {"kk", "kazakh"},      {"sq", "albanian"},      {"sw", "swahili"},
    {"gl", "galician"},       {"mr", "marathi"},     {"pa", "punjabi"},       {"si", "sinhala"},
    {"km", "khmer"},          {"sn", "shona"},       {"yo", "yoruba"},        {"so", "somali"},
    {"af", "afrikaans"},      {"oc", "occitan"},     {"ka", "georgian"},      {"be", "belarusian"},
    {"tg", "tajik"},          {"sd", "sindhi"},      {"gu", "gujarati"},      {"am", "amharic"},
    {"yi", "yiddish"},        {"lo", "lao"},         {"uz", "uzbek"},         {"fo", "faroese"},
    {"ht", "haitian creole"}, {"ps", "pashto"},      {"tk", "turkmen"},       {"nn", "nynorsk"},
    {"mt", "maltese"},        {"sa", "sanskrit"},    {"lb", "luxembourgish"}, {"my", "myanmar"},
    {"bo", "tibetan"},        {"tl", "tagalog"},     {"mg", "malagasy"},      {"as", "assamese"},
    {"tt", "tatar"},          {"haw", "hawaiian"},   {"ln", "lingala"},       {"ha", "hausa"},
    {"ba", "bashkir"},        {"jw", "javanese"},    {"su", "sundanese"},     {"yue", "cantonese"},
});

// Name to code.
constexpr std::array kAliases = std::to_array<Row>({
    {"burmese", "my"},
    {"valencian", "ca"},
    {"flemish", "nl"},
    {"haitian", "ht"},
    {"letzeburgesch", "lb"},
    {"pushto", "ps"},
    {"panjabi", "pa"},
    {"moldavian", "ro"},
    {"moldovan", "ro"},
    {"sinhalese", "si"},
    {"castilian", "es"},
    {"mandarin", "zh"},
});

constexpr int kEnglishVocabulary = 51864;
constexpr int kTimestamps = 1501;  // 0.00 to 30.00 s in steps of 20 ms
constexpr int kOtherSpecialTokens = 8;

}  // namespace

std::vector<std::pair<std::string, TokenId>> whisper_special_tokens(int vocabulary_size) {
  std::vector<std::pair<std::string, TokenId>> tokens;
  if (vocabulary_size < kEnglishVocabulary) return tokens;
  const TokenId first = vocabulary_size == kEnglishVocabulary ? 50256 : 50257;
  const int languages = std::min(vocabulary_size - first - kOtherSpecialTokens - kTimestamps,
                                 static_cast<int>(kLanguages.size()));
  const auto add = [&](std::string name) {
    tokens.emplace_back("<|" + std::move(name) + "|>", first + static_cast<TokenId>(tokens.size()));
  };
  add("endoftext");
  add("startoftranscript");
  for (int i = 0; i < languages; ++i)
    add(std::string(kLanguages[static_cast<std::size_t>(i)].first));
  for (const char* name :
       {"translate", "transcribe", "startoflm", "startofprev", "nospeech", "notimestamps"}) {
    add(name);
  }
  for (int i = 0; i < kTimestamps; ++i) {
    char time[16];
    std::snprintf(time, sizeof(time), "%d.%02d", i / 50, i % 50 * 2);
    add(time);
  }
  return tokens;
}

std::span<const std::pair<std::string_view, std::string_view>> whisper_languages() {
  return kLanguages;
}

std::optional<std::string> whisper_language_code(std::string_view code_or_name) {
  std::string wanted(code_or_name);
  std::transform(wanted.begin(), wanted.end(), wanted.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const auto& [code, name] : kLanguages) {
    if (wanted == code || wanted == name) return std::string(code);
  }
  for (const auto& [name, code] : kAliases) {
    if (wanted == name) return std::string(code);
  }
  return std::nullopt;
}

}  // namespace oasr
