// What the writers of reports share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "oasr/eval.h"

namespace oasr::eval {

OrderedJson counts_json(const ErrorCounts& counts);
OrderedJson rate_json(const ErrorRate& rate);
// Null without a value.
inline OrderedJson number_json(const std::optional<double>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}
OrderedJson strings_json(const std::vector<std::string>& strings);

// Errors over reference length; nothing without a reference.
std::optional<double> percent(const ErrorCounts& counts);

// "4.38", or "–" without a value.
std::string number_text(const std::optional<double>& value);
// "+0.38", or "–" without a value.
std::string signed_text(const std::optional<double>& value);
// "[3.10, 5.67]", or nothing.
std::string interval_text(const std::optional<double>& low, const std::optional<double>& high);
// "REF  the words ***", "HYP  …", columns below each other; wrapped to `width` columns.
std::string alignment_text(const EvalUtterance& utterance, const std::string& costs,
                           std::size_t width);

// A table in lines: the first column to the left, the others to the right.
std::string table_text(const std::vector<std::vector<std::string>>& rows);

// The indices of utterances with word errors, most errors first, then the higher rate, then in
// order.
std::vector<std::size_t> worst_first(const EvalReport& report, std::size_t most);

}  // namespace oasr::eval
