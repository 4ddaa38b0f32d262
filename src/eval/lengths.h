// Utterances by length, in seconds or, where durations are not known, in words of the reference.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "oasr/eval.h"

namespace oasr::eval {

class LengthBuckets {
 public:
  // For these utterances, which are counted.
  explicit LengthBuckets(std::span<const EvalUtterance> utterances);

  const char* unit() const { return timed_ ? "s" : "words"; }
  std::size_t count() const { return ends_.size() + 2; }
  std::size_t of(const EvalUtterance& utterance) const;
  // "2-5", "30 and more"; the last is "not known", such as audio that can not be read.
  std::string name(std::size_t bucket) const;

 private:
  bool timed_;
  std::vector<double> ends_;  // upper ends: exclusive for seconds, inclusive for words
};

}  // namespace oasr::eval
