#include "engine/language.h"

#include <cmath>
#include <vector>

#include "base/check.h"
#include "decode/scores.h"

namespace oasr::engine {

DetectedLanguage detect_language(models::AedState& state, models::WindowId window,
                                 const models::AedModel& model) {
  const auto& languages = model.tokens().languages;
  CHECK(!languages.empty(), "a multilingual model names its languages");
  const TokenId start = model.tokens().sot;
  const decode::RowId row = state.open_row(window);
  const decode::StepScorer::Input input{row, {&start, 1}};
  std::vector<float> logits(static_cast<std::size_t>(state.vocabulary_size()));
  state.score({&input, 1}, logits);
  state.close_row(row);

  std::vector<float> scores;
  scores.reserve(languages.size());
  for (const auto& [code, id] : languages) scores.push_back(logits[static_cast<std::size_t>(id)]);
  const auto best = static_cast<std::size_t>(decode::arg_max(scores));
  return {languages[best].first, std::exp(double{scores[best]} - decode::log_sum_exp(scores))};
}

}  // namespace oasr::engine
