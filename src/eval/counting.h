// Errors of one utterance.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "oasr/eval.h"
#include "text/edit_distance.h"
#include "text/normalizer/normalizer.h"

namespace oasr::eval {

struct Counting {
  Normalizer normalizer;
  EditCosts costs;
};

// Errors: names that are not served.
Result<Counting> counting_of(const EvalOptions& options);

// Fills in the normalized texts and the counts: of words, which white space separates, and of code
// points without white space. Errors: invalid_argument if the texts are too long to compare.
Status count_utterance(EvalUtterance& utterance, const Counting& counting);

// A piece of an alignment: a side that is empty has nothing there.
struct AlignedWord {
  EditOp op;
  std::string_view reference, hypothesis;
};

// Word by word; borrows the normalized texts. Nothing if they are too long for a table of 64 MiB.
std::vector<AlignedWord> align_words(const EvalUtterance& utterance, EditCosts costs);

void add(ErrorCounts& sum, const ErrorCounts& counts);

}  // namespace oasr::eval
