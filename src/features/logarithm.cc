#include "features/logarithm.h"

#include "base/check.h"

namespace oasr {

void natural_log(std::span<const float> x, std::span<float> y) {
  CHECK(x.size() == y.size(), "as many logarithms as values");
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = log_of<LogBase::e>(x[i]);
}

void common_log(std::span<const float> x, std::span<float> y) {
  CHECK(x.size() == y.size(), "as many logarithms as values");
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = log_of<LogBase::ten>(x[i]);
}

}  // namespace oasr
