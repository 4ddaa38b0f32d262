#include "eval/counting.h"

#include <fmt/format.h>

#include <unordered_map>

#include "text/unicode.h"
#include "text/utf8.h"

namespace oasr {
namespace eval {
namespace {

constexpr double kMostPairs = 1e11;  // minutes of work
constexpr std::size_t kMostTable = std::size_t{64} << 20;

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= text.size();) {
    const bool ends = at == text.size();
    const std::size_t size = ends ? 1 : utf8_front(text.substr(at)).size;
    if (ends || is_space(utf8_decode(text.substr(at, size)))) {
      if (at > begin) words.push_back(text.substr(begin, at - begin));
      begin = at + size;
    }
    at += size;
  }
  return words;
}

// Equal words have equal numbers.
class Numbers {
 public:
  std::u32string of(const std::vector<std::string_view>& words) {
    std::u32string ids;
    for (const auto word : words) {
      ids += ids_.emplace(word, static_cast<char32_t>(ids_.size())).first->second;
    }
    return ids;
  }

 private:
  std::unordered_map<std::string_view, char32_t> ids_;
};

std::u32string characters_of(std::string_view text) {
  auto points = to_utf32(text);
  std::erase_if(points, is_space);
  return points;
}

Result<ErrorCounts> count(const std::u32string& reference, const std::u32string& hypothesis,
                          EditCosts costs) {
  if (static_cast<double>(reference.size()) * static_cast<double>(hypothesis.size()) > kMostPairs) {
    return unexpected(ErrorCode::invalid_argument,
                      fmt::format("is too long to compare ({} and {} characters)", reference.size(),
                                  hypothesis.size()),
                      {}, "cut it into utterances");
  }
  const auto counts = count_edits(reference, hypothesis, costs);
  return ErrorCounts{counts.reference, counts.substitutions, counts.deletions, counts.insertions};
}

}  // namespace

Result<Counting> counting_of(const EvalOptions& options) {
  const auto normalizer = parse_enum(normalizer_names(), options.normalizer);
  if (!normalizer) {
    return unexpected(ErrorCode::invalid_argument,
                      "'" + options.normalizer + "' is not a normalizer", "normalizer",
                      enum_names(normalizer_names()));
  }
  const auto costs = parse_enum(edit_costs_names(), options.costs);
  if (!costs) {
    return unexpected(ErrorCode::invalid_argument, "'" + options.costs + "' are no costs", "costs",
                      enum_names(edit_costs_names()));
  }
  return Counting{*normalizer, *costs};
}

Status count_utterance(EvalUtterance& utterance, const Counting& counting) {
  utterance.normalized_reference = normalize(counting.normalizer, utterance.reference);
  utterance.normalized_hypothesis = normalize(counting.normalizer, utterance.hypothesis);
  Numbers numbers;
  const auto reference = numbers.of(words_of(utterance.normalized_reference));
  const auto hypothesis = numbers.of(words_of(utterance.normalized_hypothesis));
  const auto words = count(reference, hypothesis, counting.costs);
  const auto characters = count(characters_of(utterance.normalized_reference),
                                characters_of(utterance.normalized_hypothesis), counting.costs);
  for (const auto* result : {&words, &characters}) {
    if (*result) continue;
    Error error = result->error();
    error.where = fmt::format("utterance '{}'", utterance.id);
    return unexpected(std::move(error));
  }
  utterance.words = *words;
  utterance.characters = *characters;
  return {};
}

std::vector<AlignedWord> align_words(const EvalUtterance& utterance, EditCosts costs) {
  const auto reference = words_of(utterance.normalized_reference);
  const auto hypothesis = words_of(utterance.normalized_hypothesis);
  std::vector<AlignedWord> aligned;
  if (!reference.empty() && hypothesis.size() > kMostTable / reference.size()) return aligned;
  Numbers numbers;
  const auto reference_ids = numbers.of(reference);
  const auto hypothesis_ids = numbers.of(hypothesis);
  std::size_t i = 0, j = 0;
  for (const EditOp op : align(reference_ids, hypothesis_ids, costs)) {
    AlignedWord word{op, {}, {}};
    if (op != EditOp::insertion) word.reference = reference[i++];
    if (op != EditOp::deletion) word.hypothesis = hypothesis[j++];
    aligned.push_back(word);
  }
  return aligned;
}

void add(ErrorCounts& sum, const ErrorCounts& counts) {
  sum.reference += counts.reference;
  sum.substitutions += counts.substitutions;
  sum.deletions += counts.deletions;
  sum.insertions += counts.insertions;
}

}  // namespace eval
}  // namespace oasr
