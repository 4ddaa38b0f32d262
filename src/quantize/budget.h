// Which layers are quantized when word error, bytes or milliseconds are limited.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "quantize/back_off.h"

namespace oasr::quantize {

// Nothing: no limit.
struct Budget {
  std::optional<double> wer;          // points that word error may rise
  std::optional<std::int64_t> bytes;  // of all weights
  std::optional<double> ms;           // for a second of audio
};

// "wer=0.05,bytes=40M,ms=12.5"; bytes take K, M, G (powers of 1000). Errors (invalid_argument): no key,
// another one, one that is there twice, a value that is no number above 0 (wer: from 0).
Result<Budget> parse_budget(std::string_view text);

// A layer that could be quantized, and what that does.
struct BudgetItem {
  std::string path;
  double effect = 0;             // on the output when it alone is quantized; from 0
  std::int64_t bytes_saved = 0;  // may be negative, as
  double ms_saved = 0;
};

// The whole model at full precision.
struct ModelCost {
  std::int64_t bytes = 0;
  double ms = 0;
};

struct BudgetChoice {
  std::vector<std::string> quantized, full_precision;  // in the order of the items
  double effect = 0;                                   // sum of those that are quantized
  double least_effect = 0;         // no choice that meets bytes and ms has less; 0 without such limits
  ModelCost cost;                  // of the model then
  std::optional<GateReport> gate;  // of the choice, when word error is limited
  // Which limit can not be met, and what to allow, in words; then all above is what comes nearest. Empty: all are met.
  std::string unmet;
};

// bytes and ms: the model meets them with little total effect. Layers are taken by effect for what they save
// of what is still to be saved, then left out or exchanged one by one as long as that lowers the effect;
// equals keep the order of the items. A layer that costs bytes (ms) when quantized is not chosen when they
// are limited. The effect is at most 1 + ln(1 / r) times the least possible, r the share of the savings that
// was open before the last layer (Wolsey's bound for greedy covers); BudgetChoice::least_effect bounds it for
// the case at hand. wer: `evaluate` judges with this limit. Alone: as many layers as pass, in the order of
// rising effect, found by bisection. With bytes or ms: their choice must pass. Errors: those of `evaluate`.
Result<BudgetChoice> choose_layers(std::span<const BudgetItem> items, const ModelCost& full,
                                   const Budget& budget, const Evaluate& evaluate);

}  // namespace oasr::quantize
