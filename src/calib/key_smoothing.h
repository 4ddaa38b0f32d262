// SmoothAttention: q · k = (λ q) · (k / λ) for a λ of every channel. It takes channels that are large in
// every key out of the keys, which a 4-bit cache rounds, into the queries, which it does not hold. Lin et al.
// 2024 (QServe), 4.2.
//
// λ is no power of two, unlike SmoothQuant's s: it lies near 1, and rounded so it gains nothing
// (docs/decisions/005). What is folded is rounded once to float32.
#pragma once

#include <span>
#include <vector>

#include "calib/folds.h"
#include "calib/input_statistics.h"
#include "calib/weights.h"
#include "quant/layout.h"

namespace oasr::calib {

// The channel of a head that positions rotate together with `channel`: itself where they rotate none.
std::int64_t rotary_partner(const quant::AttentionScores& attention, std::int64_t channel);

// Magnitudes that meet λ. Channels of keys are [kv_heads · head_dim], of queries [query_heads · head_dim].
struct KeyMagnitudes {
  std::vector<float> keys;        // greatest |k| on calibration, before rotation
  std::vector<float> key_rows;    // greatest |W| and |b| of what writes the channel
  std::vector<float> query_rows;  // likewise
};

// λ of the channels of the keys, [kv_heads · head_dim].
struct KeyScales {
  std::vector<double> lambda = {};
  double alpha = 0;
  std::int64_t moved = 0;    // channels with λ != 1
  std::int64_t idle = 0;     // never other than 0: λ = 1
  std::int64_t clamped = 0;  // held back by the guard
};

// λ = max|k|^alpha, alpha in [0, 1], one for both channels of a rotary pair, of the greater of them; max|k|
// counts as 1e-6 at least, and a pair that was 0 all the time keeps λ = 1. Held in the powers of two between
// which all rows that are folded, those of every query head that shares the keys too, stay normal numbers of
// float16.
KeyScales smooth_keys(const quant::AttentionScores& attention, const KeyMagnitudes& magnitudes, double alpha);

struct KeyPlan {
  quant::AttentionScores attention;
  KeyScales scales;
};
// `keys` are the statistics of what the layout's `key` writes, its rows of keys only.
KeyPlan plan_keys(const quant::AttentionScores& attention, const Weights& weights,
                  const InputStatistics& keys, double alpha);

// Adds what the plan folds: λ into the rows (and bias) that write queries, 1/λ into those of keys.
// invalid_argument, with the head and the channels, for two scales in a rotary pair: rotation mixes the two
// channels, and the scores would not be the same.
Status fold_keys(const KeyPlan& plan, const Weights& weights, Folds& folds);

}  // namespace oasr::calib
