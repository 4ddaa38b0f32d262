#include "decode/alignment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/check.h"

namespace oasr::decode {
namespace {

constexpr int kMedianWidth = 7;

std::size_t at(int row, int column, int columns) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
         static_cast<std::size_t>(column);
}

// One head's rows cut to `used` frames and renormalised.
void cut_head(const AttentionWeights& weights, int head, int used, std::vector<float>& rows) {
  for (int token = 0; token < weights.tokens; ++token) {
    const float* from =
        weights.values.data() + at(head * weights.tokens + token, 0, weights.frames);
    double sum = 0;
    for (int t = 0; t < used; ++t) sum += from[t];
    const double scale = sum > 0 ? 1.0 / sum : 0.0;
    for (int t = 0; t < used; ++t) {
      rows[at(token, t, used)] = static_cast<float>(from[t] * scale);
    }
  }
}

// Zero mean and unit (population) deviation over the tokens of every frame.
void standardise(std::vector<float>& rows, int tokens, int used) {
  for (int t = 0; t < used; ++t) {
    double sum = 0, squares = 0;
    for (int token = 0; token < tokens; ++token) sum += rows[at(token, t, used)];
    const double mean = sum / tokens;
    for (int token = 0; token < tokens; ++token) {
      const double d = rows[at(token, t, used)] - mean;
      squares += d * d;
    }
    const double deviation = std::sqrt(squares / tokens);
    for (int token = 0; token < tokens; ++token) {
      float& value = rows[at(token, t, used)];
      value = deviation > 0 ? static_cast<float>((value - mean) / deviation) : 0.0f;
    }
  }
}

// Adds the running median of `row` to `sum`. Rows too short to reflect stay as they are.
void add_median(std::span<const float> row, std::span<float> sum) {
  const int size = static_cast<int>(row.size());
  constexpr int kHalf = kMedianWidth / 2;
  for (int t = 0; t < size; ++t) {
    if (size <= kHalf) {
      sum[static_cast<std::size_t>(t)] += row[static_cast<std::size_t>(t)];
      continue;
    }
    std::array<float, kMedianWidth> window;
    for (int k = -kHalf; k <= kHalf; ++k) {
      int place = std::abs(t + k);
      if (place >= size) place = 2 * (size - 1) - place;
      window[static_cast<std::size_t>(k + kHalf)] = row[static_cast<std::size_t>(place)];
    }
    std::nth_element(window.begin(), window.begin() + kHalf, window.end());
    sum[static_cast<std::size_t>(t)] += window[kHalf];
  }
}

}  // namespace

std::vector<float> alignment_matrix(const AttentionWeights& weights, int frames_used) {
  CHECK(weights.heads > 0 && weights.tokens > 0, "attention of at least one head and token");
  CHECK(frames_used > 0 && frames_used <= weights.frames, "frames of the window");
  const std::size_t size = at(weights.tokens, 0, frames_used);
  std::vector<float> mean(size, 0.0f), rows(size);
  for (int head = 0; head < weights.heads; ++head) {
    cut_head(weights, head, frames_used, rows);
    standardise(rows, weights.tokens, frames_used);
    for (int token = 0; token < weights.tokens; ++token) {
      const auto part = at(token, 0, frames_used);
      add_median(std::span(rows).subspan(part, static_cast<std::size_t>(frames_used)),
                 std::span(mean).subspan(part, static_cast<std::size_t>(frames_used)));
    }
  }
  for (float& value : mean) value /= static_cast<float>(weights.heads);
  return mean;
}

AlignmentPath warp(std::span<const float> scores, int tokens, int frames) {
  CHECK(tokens > 0 && frames > 0 && scores.size() == at(tokens, 0, frames), "a score a cell");
  enum Step : std::uint8_t { both, token_only, frame_only };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<Step> steps(scores.size());
  // Costs of the previous and this token's row, with a border before the first frame.
  std::vector<float> above(static_cast<std::size_t>(frames) + 1, kInfinity), row(above);
  above[0] = 0;
  for (int token = 0; token < tokens; ++token) {
    row[0] = kInfinity;
    for (int t = 0; t < frames; ++t) {
      const auto place = static_cast<std::size_t>(t);
      const float diagonal = above[place], up = above[place + 1], left = row[place];
      Step step = frame_only;
      float cost = left;
      if (diagonal < up && diagonal < left) {
        step = both, cost = diagonal;
      } else if (up < diagonal && up < left) {
        step = token_only, cost = up;
      }
      row[place + 1] = static_cast<float>(double{cost} - scores[at(token, t, frames)]);
      steps[at(token, t, frames)] = step;
    }
    above.swap(row);
  }
  AlignmentPath path;
  for (int token = tokens - 1, t = frames - 1; token >= 0 && t >= 0;) {
    path.tokens.push_back(token);
    path.frames.push_back(t);
    if (token == 0 && t == 0) break;
    // At the borders only one way leads back.
    const Step step = token == 0 ? frame_only : t == 0 ? token_only : steps[at(token, t, frames)];
    if (step != frame_only) --token;
    if (step != token_only) --t;
  }
  std::reverse(path.tokens.begin(), path.tokens.end());
  std::reverse(path.frames.begin(), path.frames.end());
  return path;
}

std::vector<int> first_frames(const AlignmentPath& path, int tokens) {
  std::vector<int> first(static_cast<std::size_t>(tokens), 0);
  int previous = -1;
  for (std::size_t i = 0; i < path.tokens.size(); ++i) {
    if (path.tokens[i] == previous) continue;
    previous = path.tokens[i];
    first[static_cast<std::size_t>(previous)] = path.frames[i];
  }
  return first;
}

}  // namespace oasr::decode
