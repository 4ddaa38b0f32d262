// What the engine knows of a model: a description for reports, and one interface a decode family.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "decode/ctc_frames.h"
#include "decode/ctc_prefix_beam.h"
#include "decode/ctc_scores.h"
#include "decode/rescoring.h"
#include "decode/step_scorer.h"
#include "device/thread_pool.h"
#include "features/fbank.h"
#include "layers/layer_list.h"
#include "tensor/dtype.h"
#include "text/tokenizer.h"

namespace oasr::models {

// Facts for `oasr inspect` and reports.
struct ModelInfo {
  std::string architecture;        // "whisper"
  std::string size_name;           // "base", or empty when no known size matches
  std::int64_t parameters = 0;
  DType weight_dtype = DType::f32; // as served
  std::int64_t weight_bytes = 0;   // resident, packed
  DType kv_storage = DType::f32;   // of cross-attention keys and values
  std::vector<std::string> languages;
  std::map<std::string, std::string> lanes;  // op -> lane bound ("linear" -> "avx512")
  std::vector<std::string> notes;  // dequantized, tied head, …
};

class SpeechModel {
 public:
  virtual ~SpeechModel() = default;
  virtual const ModelInfo& info() const = 0;
  virtual const Tokenizer& tokenizer() const = 0;
  // Its layers, for links, reports and saving.
  virtual const layers::LayerList& layers() const = 0;
};

// Ids that an attention encoder-decoder of Whisper's kind decodes with.
struct AedTokens {
  TokenId eot = 0, sot = 0, sot_prev = 0, sot_lm = 0, no_speech = 0, no_timestamps = 0;
  TokenId transcribe = 0, translate = 0;
  TokenId timestamp_begin = 0;                                   // <|0.00|>; 20 ms a step
  std::vector<std::pair<std::string, TokenId>> languages;        // empty for English-only
  std::vector<TokenId> suppress;                                 // the checkpoint's, never sampled
  std::vector<TokenId> begin_suppress;                           // not as the first token
  std::vector<std::pair<int, int>> alignment_heads;              // (decoder layer, head)
};

// A layer computed NaN or infinity.
struct Fault {
  std::string layer;   // "model.encoder.layers.3.fc1", or "logits"
  decode::RowId row = -1;  // whose; -1: the window that was being encoded, or not known
};

using WindowId = int;  // an encoded 30 s window: its cross-attention keys and values

// What an encoder gets: mel [n_mels, 3000] row-major, normalised. The first `audio_frames` frames come from audio,
// the rest are padding: of use to observers only.
struct MelWindow {
  std::span<const float> mel;
  std::int64_t audio_frames = std::numeric_limits<std::int64_t>::max() / 2;  // all
};

// Decoder state over encoded windows. Rows belong to a window. Not thread-safe; memory is sized at
// creation, no allocation in score() afterwards.
class AedState : public decode::StepScorer {
 public:
  // Runs the encoder and the cross-attention projections; `ids` are those of `windows`, one each. What becomes of a
  // window does not depend on others. If it throws no window is open.
  virtual void encode(std::span<const MelWindow> windows, std::span<WindowId> ids) = 0;
  WindowId encode(const MelWindow& window) {
    WindowId id = 0;
    encode({&window, 1}, {&id, 1});
    return id;
  }
  WindowId encode(std::span<const float> mel) { return encode(MelWindow{.mel = mel}); }
  virtual void release(WindowId window) = 0;

  virtual decode::RowId open_row(WindowId window) = 0;
  virtual void close_row(decode::RowId row) = 0;

  // Teacher-forced pass over `tokens` on a window: softmax-ed cross-attention weights of the
  // alignment heads, [heads, tokens, frames], frames = window_frames / 2 (1500); and the logits
  // after each token, [tokens, V], when `logits` is not empty.
  virtual std::vector<float> alignment(WindowId window, std::span<const TokenId> tokens,
                                       std::span<float> logits) = 0;

  // What was not finite since the last call of this function, if anything: a model that computes NaN
  // from good audio is broken, and its text is none.
  virtual std::optional<Fault> take_fault() = 0;

  // Encoder output [1500, d_model] of the last encode(), for tests.
  virtual std::vector<float> encoder_output() = 0;
};

// An attention encoder-decoder over fixed windows (Whisper).
class AedModel : public SpeechModel {
 public:
  virtual int n_mels() const = 0;
  virtual int window_frames() const = 0;   // 3000
  virtual int context_size() const = 0;    // 448
  virtual bool multilingual() const = 0;
  virtual const AedTokens& tokens() const = 0;
  // `windows` and `rows` bound what may be open at a time.
  virtual Result<std::unique_ptr<AedState>> new_state(ExecContext context, int windows,
                                                      int rows) const = 0;
};

// How far an encoder frame of a CTC model may look.
struct ChunkMask {
  int chunk_size = 0;        // encoder frames that are seen together; 0: all of the utterance
  int num_left_chunks = -1;  // chunks before a frame's own that it sees; negative: all

  bool operator==(const ChunkMask&) const = default;
};

using UtteranceId = int;  // an open utterance of a CtcState

// The memory of utterances on their way through a CTC model: features in, log-probabilities out, piece
// by piece; then scores of hypotheses by its attention decoders (SequenceScorer, Item::utterance is the
// UtteranceId). What an utterance gives is the same bits whatever its pieces and its neighbours are.
// Not thread-safe.
class CtcState : public decode::SequenceScorer {
 public:
  // `whole`: all of its frames are computed in one step after finish(), which costs less memory; with a
  // chunk mask the result is that of a stream. A mask of chunk size 0 is always whole.
  virtual UtteranceId open(const ChunkMask& mask, bool whole) = 0;
  virtual void close(UtteranceId utterance) = 0;

  // Feature frames [n, input_dim] of front_end(), n >= 0.
  virtual void accept(UtteranceId utterance, std::span<const float> features) = 0;
  // There are no more.
  virtual void finish(UtteranceId utterance) = 0;
  // Whether step() would compute something for it.
  virtual bool ready(UtteranceId utterance) const = 0;
  // Advances each of the utterances, all ready, by a chunk (or wholly), in one pass. `width`: of each frame the
  // likeliest tokens are wanted, so many, 1 … vocabulary; an utterance keeps to one width.
  virtual void step(std::span<const UtteranceId> utterances, int width) = 0;
  // The same, and every token of each frame is wanted: of a large vocabulary that costs more, above all on a GPU.
  virtual void step(std::span<const UtteranceId> utterances) = 0;

  // The likeliest tokens of the frames of the utterance's last step, if it was of a width; until the next step().
  virtual decode::CtcFrames likeliest(UtteranceId utterance) const = 0;
  // Log-probabilities of the frames of the utterance's last step, if it was of every token; until the next step().
  virtual decode::CtcScores scores(UtteranceId utterance) const = 0;
  // Prefix beam search of whole utterances where the model runs, after the step that told their likeliest tokens, at
  // least options.first_beam of a frame: the hypotheses of each, as decode::CtcPrefixBeam gives them, to the bit.
  // False: nothing was done and the caller searches, since the model runs on the processor, phrases are preferred, or
  // the beam is wider than kernels of a GPU have room for.
  virtual bool search(std::span<const UtteranceId> utterances, const decode::CtcBeamOptions& options,
                      std::span<std::vector<decode::CtcHypothesis>> hypotheses) = 0;
  // Encoder frames computed so far.
  virtual std::int64_t frames(UtteranceId utterance) const = 0;
  // The encoder's output so far, [frames, D]; for tests.
  virtual std::vector<float> encoder_output(UtteranceId utterance) = 0;
  // What was not finite since the last call of this function, if anything; `row` is the UtteranceId.
  virtual std::optional<Fault> take_fault() = 0;

  // The left-to-right decoder as a step scorer for one utterance whose frames are all computed, with room
  // for `rows` hypotheses of `tokens` tokens. Null: the model has no decoder. The state must outlive it.
  virtual std::unique_ptr<decode::StepScorer> open_decoder(UtteranceId utterance, int rows, int tokens) = 0;

  // Resident memory of an utterance: caches of keys and values, and all else.
  struct Memory {
    std::size_t caches = 0;
    std::size_t other = 0;
  };
  virtual Memory memory(UtteranceId utterance) const = 0;
};

// Ids and figures that a CTC model with attention decoders is decoded with.
struct CtcTokens {
  TokenId blank = 0, sos = 0, eos = 0;
};

// An encoder with a CTC head, offline or streaming, and perhaps attention decoders over it (U2, U2++).
class CtcModel : public SpeechModel {
 public:
  virtual const FbankOptions& front_end() const = 0;
  virtual const CtcTokens& tokens() const = 0;
  virtual int vocabulary() const = 0;
  // Feature frames from one encoder frame to the next, and those that the first one reads after its own.
  virtual int subsampling_rate() const = 0;
  virtual int right_context() const = 0;
  virtual bool has_decoder() const = 0;
  virtual bool has_right_to_left() const = 0;
  virtual double reverse_weight() const = 0;  // as trained
  // Nothing, or why the model can not be cut into chunks.
  virtual std::string streaming_refusal() const = 0;
  virtual Result<std::unique_ptr<CtcState>> new_state(ExecContext context) const = 0;
};

}  // namespace oasr::models
