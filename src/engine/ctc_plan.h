// The options of one call for a CTC model: checked, resolved, immutable.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/enum_table.h"
#include "base/result.h"
#include "decode/context_graph.h"
#include "decode/ctc_prefix_beam.h"
#include "models/speech_model.h"
#include "oasr/options.h"

namespace oasr::engine {

enum class CtcMode : std::uint8_t {
  ctc_greedy_search,
  ctc_prefix_beam_search,
  attention_rescoring,
  attention,
  joint,
};
std::span<const EnumName<CtcMode>> ctc_mode_names();

struct CtcPlan {
  const models::CtcModel* model = nullptr;
  CtcMode mode = CtcMode::attention_rescoring;
  models::ChunkMask mask;
  int beam_size = 10;
  int n_best = 1;
  double ctc_weight = 0.5;
  double reverse_weight = 0;
  bool word_timestamps = false;
  VadOptions vad;
  std::shared_ptr<const decode::ContextGraph> context;  // null: no phrases are preferred

  double seconds_per_frame() const {
    return model->front_end().frame_shift_ms * model->subsampling_rate() / 1000;
  }
  decode::CtcBeamOptions prefix_beam() const;
  // Of each frame the search reads the likeliest tokens, so many; 0: any.
  int tokens_of_frame() const;
};

// What can be said without a model: names and ranges.
Status check_ctc(const CtcOptions& options);
// For a model of another family: an error that names the first option that was set.
Status check_ctc_untouched(const CtcOptions& options);

// Validates and resolves; the model must outlive the plan. Errors (invalid_argument, unsupported) name the
// option: those of other families when they are set, a mode that needs a decoder that is not there, chunks
// for a model that looks ahead, phrases that no unit spells.
Result<CtcPlan> make_ctc_plan(const TranscribeOptions& options, const models::CtcModel& model);

}  // namespace oasr::engine
