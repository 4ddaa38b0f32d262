// The words of English numbers, and whole numbers of any length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "text/normalizer/steps.h"

namespace oasr::normalizer {

enum class NumberKind : std::uint8_t {
  zero,                 // o, oh, zero
  one,                  // one to nineteen
  one_suffixed,         // ones, third, nineteenth
  ten,                  // twenty to ninety
  ten_suffixed,         // twenties, twentieth
  multiplier,           // hundred to decillion
  multiplier_suffixed,  // hundreds, hundredth
  sign,                 // minus, plus: before a number
  currency,             // dollars: behind a number
  percent,              // percent, and per cent
  special,              // and, double, triple, point
};

struct NumberWord {
  NumberKind kind;
  int value = 0;  // of ones and tens; of multipliers the power of ten
  View suffix;    // "s", "th"; of signs and currencies their symbol
};

// Nothing for a word that has to do with no number.
const NumberWord* number_word(View word);
bool is_number_word(View word);
bool is_number_word(View word, NumberKind kind);

// A number under way: a whole number, or digits and points that were put side by side.
struct NumberValue {
  bool is_whole = true;
  Text digits;  // of a whole number ASCII without leading zeros; "0" is zero

  bool is_zero() const { return is_whole && digits == U"0"; }
  bool ends_with_zeros(std::size_t count) const;  // of a whole number: divisible by 10^count
};

NumberValue whole(int value);
NumberValue power_of_ten(int power);
// a + b of whole numbers in digits.
NumberValue sum(const NumberValue& a, const NumberValue& b);
// What a multiplier makes of a whole number: its part below 1000 is multiplied by 10^power.
NumberValue scaled_thousands(const NumberValue& value, int power);
// digits · 10^power if that is a number and whole.
std::optional<NumberValue> scaled_decimal(View digits, int power);

// "12" or "12.5" in digits of any script.
bool is_arabic_number(View word);
// The number that such a word writes: whole if its fraction is zero.
NumberValue arabic_number(View word);

}  // namespace oasr::normalizer
