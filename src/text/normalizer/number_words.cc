#include "text/normalizer/number_words.h"

#include <algorithm>
#include <unordered_map>

#include "text/unicode.h"

namespace oasr::normalizer {
namespace {

constexpr View kOnes[] = {U"one",     U"two",       U"three",    U"four",     U"five",
                          U"six",     U"seven",     U"eight",    U"nine",     U"ten",
                          U"eleven",  U"twelve",    U"thirteen", U"fourteen", U"fifteen",
                          U"sixteen", U"seventeen", U"eighteen", U"nineteen"};
constexpr View kTens[] = {U"twenty", U"thirty",  U"forty",  U"fifty",
                          U"sixty",  U"seventy", U"eighty", U"ninety"};
constexpr View kThousands[] = {U"thousand",    U"million",     U"billion",    U"trillion",
                               U"quadrillion", U"quintillion", U"sextillion", U"septillion",
                               U"octillion",   U"nonillion",   U"decillion"};

using Words = std::unordered_map<Text, NumberWord>;

void add_ones(Words& words) {
  for (const View word : {U"o", U"oh", U"zero"}) words[Text(word)] = {NumberKind::zero, 0, {}};
  int value = 0;
  for (const View view : kOnes) {
    const Text word(view);
    ++value;
    words[word] = {NumberKind::one, value, {}};
    words[value == 6 ? U"sixes" : word + U"s"] = {NumberKind::one_suffixed, value, U"s"};
    // The reference knows "nineth", not "ninth".
    if (value > 3 && value != 5 && value != 12) {
      words[word + (word.ends_with('t') ? U"h" : U"th")] = {NumberKind::one_suffixed, value, U"th"};
    }
  }
  words[U"zeroth"] = {NumberKind::one_suffixed, 0, U"th"};
  words[U"first"] = {NumberKind::one_suffixed, 1, U"st"};
  words[U"second"] = {NumberKind::one_suffixed, 2, U"nd"};
  words[U"third"] = {NumberKind::one_suffixed, 3, U"rd"};
  words[U"fifth"] = {NumberKind::one_suffixed, 5, U"th"};
  words[U"twelfth"] = {NumberKind::one_suffixed, 12, U"th"};
}

void add_tens(Words& words) {
  int value = 10;
  for (const View word : kTens) {
    value += 10;
    const Text stem(word.substr(0, word.size() - 1));
    words[Text(word)] = {NumberKind::ten, value, {}};
    words[stem + U"ies"] = {NumberKind::ten_suffixed, value, U"s"};
    words[stem + U"ieth"] = {NumberKind::ten_suffixed, value, U"th"};
  }
}

void add_multiplier(Words& words, View word, int power) {
  words[Text(word)] = {NumberKind::multiplier, power, {}};
  words[Text(word) + U"s"] = {NumberKind::multiplier_suffixed, power, U"s"};
  words[Text(word) + U"th"] = {NumberKind::multiplier_suffixed, power, U"th"};
}

Words make_words() {
  Words words;
  add_ones(words);
  add_tens(words);
  add_multiplier(words, U"hundred", 2);
  int power = 0;
  for (const View word : kThousands) add_multiplier(words, word, power += 3);
  for (const View word : {U"minus", U"negative"}) words[Text(word)] = {NumberKind::sign, 0, U"-"};
  for (const View word : {U"plus", U"positive"}) words[Text(word)] = {NumberKind::sign, 0, U"+"};
  for (const auto& [word, symbol] : {std::pair<View, View>{U"pound", U"£"},
                                     {U"euro", U"€"},
                                     {U"dollar", U"$"},
                                     {U"cent", U"¢"}}) {
    words[Text(word)] = words[Text(word) + U"s"] = {NumberKind::currency, 0, symbol};
  }
  for (const View word : {U"per", U"percent"}) words[Text(word)] = {NumberKind::percent, 0, U"%"};
  for (const View word : {U"and", U"double", U"triple", U"point"}) {
    words[Text(word)] = {NumberKind::special, 0, {}};
  }
  return words;
}

Text without_leading_zeros(View digits) {
  const auto first = digits.find_first_not_of(U'0');
  return first == View::npos ? U"0" : Text(digits.substr(first));
}

// ASCII digits of digits of any script.
Text ascii_digits(View digits) {
  Text out;
  for (const char32_t digit : digits) out += static_cast<char32_t>('0' + decimal_value(digit));
  return out;
}

}  // namespace

const NumberWord* number_word(View word) {
  static const Words kWords = make_words();
  const auto found = kWords.find(Text(word));
  return found == kWords.end() ? nullptr : &found->second;
}

bool is_number_word(View word) { return number_word(word) != nullptr; }

bool is_number_word(View word, NumberKind kind) {
  const auto* known = number_word(word);
  return known != nullptr && known->kind == kind;
}

bool NumberValue::ends_with_zeros(std::size_t count) const {
  if (is_zero()) return true;
  return digits.size() > count &&
         digits.find_first_not_of(U'0', digits.size() - count) == View::npos;
}

NumberValue whole(int value) {
  const auto digits = std::to_string(value);
  return {true, Text(digits.begin(), digits.end())};
}

NumberValue power_of_ten(int power) {
  return {true, U"1" + Text(static_cast<std::size_t>(power), U'0')};
}

NumberValue sum(const NumberValue& a, const NumberValue& b) {
  Text reversed;
  char32_t carry = 0;
  const auto size = std::max(a.digits.size(), b.digits.size());
  const auto digit = [](View digits, std::size_t from_right) -> char32_t {
    return from_right < digits.size() ? digits[digits.size() - 1 - from_right] - U'0' : 0;
  };
  for (std::size_t i = 0; i < size; ++i) {
    const char32_t total = digit(a.digits, i) + digit(b.digits, i) + carry;
    reversed += U'0' + total % 10;
    carry = total / 10;
  }
  if (carry > 0) reversed += U'0' + carry;
  std::reverse(reversed.begin(), reversed.end());
  return {true, without_leading_zeros(reversed)};
}

NumberValue scaled_thousands(const NumberValue& value, int power) {
  const auto cut = value.digits.size() - std::min<std::size_t>(value.digits.size(), 3);
  const NumberValue before{true, without_leading_zeros(value.digits.substr(0, cut) + U"000")};
  Text residual = value.digits.substr(cut);
  residual.append(static_cast<std::size_t>(power), U'0');
  return sum(before, {true, without_leading_zeros(residual)});
}

std::optional<NumberValue> scaled_decimal(View digits, int power) {
  const auto point = std::min(digits.find(U'.'), digits.size());
  const View before = digits.substr(0, point);
  const View behind = point < digits.size() ? digits.substr(point + 1) : View();
  const auto all_decimal = [](View text) {
    return std::all_of(text.begin(), text.end(), is_decimal);
  };
  if ((before.empty() && behind.empty()) || !all_decimal(before) || !all_decimal(behind)) {
    return std::nullopt;
  }
  Text fraction = ascii_digits(behind);
  const auto places = static_cast<std::size_t>(power);
  if (fraction.size() < places) fraction.append(places - fraction.size(), U'0');
  if (fraction.find_first_not_of(U'0', places) != Text::npos) return std::nullopt;
  return NumberValue{true,
                     without_leading_zeros(ascii_digits(before) + fraction.substr(0, places))};
}

bool is_arabic_number(View word) {
  const auto digits_from = [&](std::size_t at) {
    std::size_t end = at;
    while (end < word.size() && is_decimal(word[end])) ++end;
    return end - at;
  };
  const auto first = digits_from(0);
  if (first == 0 || first == word.size()) return first > 0;
  const auto second = word[first] == '.' ? digits_from(first + 1) : 0;
  return second > 0 && first + 1 + second == word.size();
}

NumberValue arabic_number(View word) {
  if (auto integer = scaled_decimal(word, 0)) return *integer;
  return {false, Text(word)};
}

}  // namespace oasr::normalizer
