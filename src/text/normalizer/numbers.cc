// Spelled-out numbers in digits, as openai-whisper's EnglishNumberNormalizer has them. Where the
// reference is odd ("one and a half" at the very start, "ninth", "oh" alone), this is odd alike.
#include <utility>

#include "text/normalizer/number_words.h"
#include "text/normalizer/steps.h"
#include "text/utf8.h"

namespace oasr::normalizer {
namespace {

constexpr View kSignsAndCurrencies = U"-+£€$¢";
constexpr View kCurrencies = U"€£$";

// Goes over the words once; a number under way is given out when a word ends it.
class NumberReader {
 public:
  explicit NumberReader(const std::vector<Text>& words) : words_(words) {}

  std::vector<Text> run() {
    for (at_ = 0; at_ < words_.size(); ++at_) {
      if (!std::exchange(skip_, false)) read(words_[at_]);
    }
    flush();
    return std::move(out_);
  }

 private:
  View previous() const { return at_ > 0 ? View(words_[at_ - 1]) : View(); }
  View next() const { return at_ + 1 < words_.size() ? View(words_[at_ + 1]) : View(); }
  bool next_is_numeric() const { return is_arabic_number(next()); }

  // Gives out a word; a sign or currency that waits goes before it.
  void emit(View word) {
    out_.push_back(prefix_ + Text(word));
    prefix_.clear();
    value_.reset();
  }
  void flush() {
    if (value_) emit(value_->digits);
  }
  void start(NumberValue value) { value_ = std::move(value); }
  // The number as text, with `more` behind it. Zero alone counts as nothing where `nothing` says
  // so.
  void append(View more, bool zero_is_nothing) {
    Text text = value_ && !(zero_is_nothing && value_->is_zero()) ? value_->digits : Text();
    start({false, text.append(more)});
  }

  void read(View word);
  void read_arabic(View word, View number);
  void read_one(const NumberWord& one, bool suffixed);
  void read_ten(const NumberWord& ten, bool suffixed);
  void read_multiplier(const NumberWord& multiplier);
  void read_multiplier_suffixed(const NumberWord& multiplier);
  void read_sign(View word, const NumberWord& sign);
  void read_percent(View word, const NumberWord& percent);
  void read_special(View word);
  void read_repeat(View word);
  NumberValue with_small(int value, bool is_one) const;

  const std::vector<Text>& words_;
  std::size_t at_ = 0;
  std::vector<Text> out_;
  std::optional<NumberValue> value_;
  Text prefix_;
  bool skip_ = false;
};

void NumberReader::read(View word) {
  const bool has_prefix = kSignsAndCurrencies.find(word[0]) != View::npos;
  if (const View number = has_prefix ? word.substr(1) : word; is_arabic_number(number)) {
    return read_arabic(word, number);
  }
  const auto* known = number_word(word);
  if (known == nullptr) {
    flush();
    return emit(word);
  }
  switch (known->kind) {
    case NumberKind::zero:
      return append(U"0", true);
    case NumberKind::one:
      return read_one(*known, false);
    case NumberKind::one_suffixed:
      return read_one(*known, true);
    case NumberKind::ten:
      return read_ten(*known, false);
    case NumberKind::ten_suffixed:
      return read_ten(*known, true);
    case NumberKind::multiplier:
      return read_multiplier(*known);
    case NumberKind::multiplier_suffixed:
      return read_multiplier_suffixed(*known);
    case NumberKind::sign:
      return read_sign(word, *known);
    case NumberKind::currency:
      if (value_) prefix_ = known->suffix;
      return emit(value_ ? View(value_->digits) : word);
    case NumberKind::percent:
      return read_percent(word, *known);
    case NumberKind::special:
      return read_special(word);
  }
}

void NumberReader::read_arabic(View word, View number) {
  if (value_) {
    // Decimals, or parts of an address: "1." and "5".
    if (!value_->is_whole && value_->digits.ends_with('.')) return append(word, false);
    flush();
  }
  if (number.size() < word.size()) prefix_ = word[0];
  start(arabic_number(number));
}

// The number under way and one to nineteen, or a multiple of ten: added where the places are free,
// put behind it elsewhere.
NumberValue NumberReader::with_small(int value, bool is_one) const {
  const NumberValue small = whole(value);
  if (!value_) return small;
  const Text& digits = value_->digits;
  if (!value_->is_whole || (is_one && is_number_word(previous(), NumberKind::one))) {
    const bool fills_ten = is_one && value < 10 && is_number_word(previous(), NumberKind::ten);
    return {false, (fills_ten ? digits.substr(0, digits.size() - 1) : digits) + small.digits};
  }
  if (value_->ends_with_zeros(is_one && value < 10 ? 1 : 2)) return sum(*value_, small);
  return {false, digits + small.digits};
}

void NumberReader::read_one(const NumberWord& one, bool suffixed) {
  auto number = with_small(one.value, true);
  if (suffixed) return emit(number.digits + Text(one.suffix));
  start(std::move(number));
}

void NumberReader::read_ten(const NumberWord& ten, bool suffixed) {
  auto number = with_small(ten.value, false);
  if (suffixed) return emit(number.digits + Text(ten.suffix));
  start(std::move(number));
}

void NumberReader::read_multiplier(const NumberWord& multiplier) {
  const int power = multiplier.value;
  if (!value_) return start(power_of_ten(power));
  if (value_->is_whole) return start(scaled_thousands(*value_, power));
  if (auto product = scaled_decimal(value_->digits, power)) return start(std::move(*product));
  flush();
  start(power_of_ten(power));
}

void NumberReader::read_multiplier_suffixed(const NumberWord& multiplier) {
  const int power = multiplier.value;
  const Text suffix(multiplier.suffix);
  if (value_ && value_->is_whole) return emit(scaled_thousands(*value_, power).digits + suffix);
  if (value_) {
    if (const auto product = scaled_decimal(value_->digits, power)) {
      return emit(product->digits + suffix);
    }
    flush();
  }
  emit(power_of_ten(power).digits + suffix);
}

void NumberReader::read_sign(View word, const NumberWord& sign) {
  flush();
  if (!is_number_word(next()) && !next_is_numeric()) return emit(word);
  prefix_ = sign.suffix;
}

void NumberReader::read_percent(View word, const NumberWord& percent) {
  if (!value_) return emit(word);
  if (word == U"per" && next() != U"cent") {
    flush();
    return emit(word);
  }
  skip_ = word == U"per";
  emit(value_->digits + Text(percent.suffix));
}

void NumberReader::read_special(View word) {
  if (!is_number_word(next()) && !next_is_numeric()) {
    flush();
    return emit(word);
  }
  if (word == U"and") {
    if (is_number_word(previous(), NumberKind::multiplier)) return;
    flush();
    return emit(word);
  }
  if (word != U"point") return read_repeat(word);
  const bool is_decimal = is_number_word(next(), NumberKind::one) ||
                          is_number_word(next(), NumberKind::ten) ||
                          is_number_word(next(), NumberKind::zero) || next_is_numeric();
  if (is_decimal) append(U".", true);  // else the word is lost, as in the reference
}

// "double five"
void NumberReader::read_repeat(View word) {
  const auto* digit = number_word(next());
  const bool is_digit =
      digit != nullptr && (digit->kind == NumberKind::one || digit->kind == NumberKind::zero);
  if (!is_digit) {
    flush();
    return emit(word);
  }
  Text digits;
  for (int i = 0; i < (word == U"double" ? 2 : 3); ++i) digits += whole(digit->value).digits;
  append(digits, true);
  skip_ = true;
}

// The end of "and a half" at `at`, or 0.
std::size_t end_of_half(View text, std::size_t at) {
  if (!is_boundary(text, at)) return 0;
  for (const View word : {U"and", U"a", U"half"}) {
    if (word != U"and") {
      const auto spaces = spaces_at(text, at);
      if (spaces == 0) return 0;
      at += spaces;
    }
    if (!text.substr(at).starts_with(word)) return 0;
    at += word.size();
  }
  return is_boundary(text, at) ? at : 0;
}

// What stands for "and a half" behind a segment of text.
View half_after(View segment) {
  const auto words = split(segment);
  const auto* last = number_word(words.back());
  const bool is_number =
      last != nullptr && (last->kind == NumberKind::zero || last->kind == NumberKind::one ||
                          last->kind == NumberKind::ten || last->kind == NumberKind::multiplier);
  return is_number ? U"point five" : U"and a half";
}

// "three and a half" as "three point five". The words are lost where nothing but space is before
// them.
Text with_halves(View text) {
  Text out;
  const auto add = [&out](View piece) {
    if (!out.empty()) out += ' ';
    out += piece;
  };
  std::size_t begin = 0;
  for (auto at = text.find(U"and"); at != View::npos; at = text.find(U"and", at + 1)) {
    const auto end = end_of_half(text, at);
    if (end == 0) continue;
    const View segment = text.substr(begin, at - begin);
    begin = end;
    at = end - 1;
    if (split(segment).empty()) continue;
    add(segment);
    add(half_after(segment));
  }
  if (!split(text.substr(begin)).empty()) add(text.substr(begin));
  return out;
}

bool is_letter(char32_t point) { return point >= 'a' && point <= 'z'; }

// A space between letters and digits.
Text with_spaced_digits(View text) {
  Text out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool border = at > 0 && ((is_letter(text[at - 1]) && is_ascii_digit(text[at])) ||
                                   (is_ascii_digit(text[at - 1]) && is_letter(text[at])));
    if (border) out += ' ';
    out += text[at];
  }
  return out;
}

// But none in "21 st" and "1960 s".
Text with_joined_suffixes(View text) {
  Text out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    out += text[at];
    const auto behind = at + 1 + (is_ascii_digit(text[at]) ? spaces_at(text, at + 1) : 0);
    if (behind == at + 1) continue;
    for (const View suffix : {U"st", U"nd", U"rd", U"th", U"s"}) {
      if (text.substr(behind).starts_with(suffix) && is_boundary(text, behind + suffix.size())) {
        out += suffix;
        at = behind + suffix.size() - 1;
        break;
      }
    }
  }
  return out;
}

// The length of one or two digits at `at` with a word boundary behind them, or 0.
std::size_t cents_at(View text, std::size_t at) {
  std::size_t size = 0;
  while (size < 2 && at + size < text.size() && is_ascii_digit(text[at + size])) ++size;
  return size > 0 && is_boundary(text, at + size) ? size : 0;
}

// "$2 and ¢7" at `at` as "$2.07", with its end; 0: there is no such.
std::size_t combine_cents(View text, std::size_t at, Text& out) {
  std::size_t end = at + 1;
  while (end < text.size() && is_ascii_digit(text[end])) ++end;
  const View dollars = text.substr(at, end - at);
  if (dollars.size() < 2 || end == text.size() || text[end] != ' ') return 0;
  ++end;
  if (text.substr(end).starts_with(U"and ")) end += 4;
  if (end == text.size() || text[end] != U'¢') return 0;
  const auto size = cents_at(text, ++end);
  if (size == 0) return 0;
  out += Text(dollars) + (size == 1 ? U".0" : U".") + Text(text.substr(end, size));
  return end + size;
}

// "$0.05" at `at` as "¢5", with its end; 0: there is no such.
std::size_t extract_cents(View text, std::size_t at, Text& out) {
  if (at + 3 >= text.size() || text[at + 1] != '0' || text[at + 2] == '\n') return 0;
  const auto size = cents_at(text, at + 3);
  if (size == 0) return 0;
  const View digits = text.substr(at + 3, size);
  out += U"¢" + Text(size == 2 && digits[0] == '0' ? digits.substr(1) : digits);
  return at + 3 + size;
}

template <class Rewrite>
Text with_currencies(View text, const Rewrite& rewrite) {
  Text out;
  for (std::size_t at = 0; at < text.size();) {
    const bool opens = kCurrencies.find(text[at]) != View::npos;
    if (const auto end = opens ? rewrite(text, at, out) : 0; end > 0) {
      at = end;
    } else {
      out += text[at++];
    }
  }
  return out;
}

// "one" and "ones" are spelled out.
Text with_spelled_ones(View text) {
  Text out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto end = at + 1 + (text.substr(at).starts_with(U"1s") ? 1 : 0);
    const bool is_one = text[at] == '1' && is_boundary(text, at) && is_boundary(text, end);
    is_one ? out += U"one" : out += text[at];
  }
  return out;
}

}  // namespace

Text standardize_numbers(View input) {
  const auto words = split(with_joined_suffixes(with_spaced_digits(with_halves(input))));
  Text text;
  bool first = true;
  for (const auto& word : NumberReader(words).run()) {
    if (!std::exchange(first, false)) text += ' ';
    text += word;
  }
  text = with_currencies(text, combine_cents);
  return with_spelled_ones(with_currencies(text, extract_cents));
}

}  // namespace oasr::normalizer
