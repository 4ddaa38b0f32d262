#include "calib/weight_clip.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/quantize/op.h"

namespace oasr::calib {
namespace {

constexpr float kGreatestCode = kernels::kInt8Greatest;

float rounded(float w, float to_int8) { return std::clamp(std::rint(w * to_int8), -kGreatestCode, kGreatestCode); }

// What is lost with a range: the weighted sum of squared errors.
double loss(std::span<const float> w, std::span<const double> importance, float amax) {
  const float to_int8 = kGreatestCode / amax;
  const double scale = amax / kGreatestCode;
  double sum = 0;
  for (std::size_t k = 0; k < w.size(); ++k) {
    const double error = w[k] - rounded(w[k], to_int8) * scale;
    sum += importance[k] * error * error;
  }
  return sum;
}

}  // namespace

Result<ClippedRow> clip_row(std::span<const float> w, std::span<const double> importance,
                            std::span<std::int8_t> codes) {
  CHECK(w.size() == importance.size() && w.size() == codes.size(),
        "a row, importance or codes of another length");
  float amax = kernels::kLeastAmax;
  for (const float value : w) {
    if (!std::isfinite(value)) {
      return unexpected(ErrorCode::bad_checkpoint, "a row of the weight holds NaN or infinity", {},
                        "the checkpoint is damaged: get it again");
    }
    amax = std::max(amax, std::fabs(value));
  }
  float best = amax;
  ClippedRow row;
  double least = loss(w, importance, amax);
  for (int percent = 99; percent >= 50; --percent) {
    const float share = static_cast<float>(percent) / 100;
    const double found = loss(w, importance, share * amax);
    if (found >= least) continue;
    least = found;
    best = share * amax;
    row.share = share;
  }
  const float to_int8 = kGreatestCode / best;
  for (std::size_t k = 0; k < w.size(); ++k) codes[k] = static_cast<std::int8_t>(rounded(w[k], to_int8));
  row.scale = best / kGreatestCode;
  return row;
}

}  // namespace oasr::calib
