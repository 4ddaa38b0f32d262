// What a model says of a few fixed recordings, number by number, so that two versions of it can be compared.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "models/speech_model.h"

namespace oasr::calib {

// Of one utterance, teacher-forced on the hypothesis that the reference model made.
struct UtteranceOutputs {
  std::int64_t rows = 0;
  // Log-probabilities [rows, V]: of CTC frames, or of the tokens of an attention decoder and the end.
  std::vector<float> log_probs;
  // Of a CTC model with attention decoders: log-probabilities of the hypothesis' tokens and the end, left to
  // right and then, if the model reads backwards too, right to left.
  std::vector<float> token_scores;
};

struct Outputs {
  std::vector<UtteranceOutputs> utterances;
};

// The features, hypotheses and outputs of a reference model. Memory: about 15 MB an utterance at most
// (64 tokens of Whisper's 51865, or 30 s of 5000 units).
class Probe {
 public:
  // What a model is asked.
  struct Utterance {
    std::vector<float> features;  // log-mel [n_mels, 3000] of a window, or fbank [frames, bins]
    std::vector<TokenId> prompt;  // what comes before the hypothesis; empty for CTC models
    std::vector<TokenId> tokens;  // the hypothesis
  };

  // Recordings are mono samples at engine::sample_rate_of(model); of longer ones the first 30 s count, and
  // of a longer hypothesis the first 64 tokens. The hypotheses are greedy. The context's pool must outlive
  // the probe. Errors: invalid_argument (no recording, or one too short for a frame), unsupported (a family
  // without a probe), bad_checkpoint (NaN or infinity).
  static Result<Probe> make(const models::SpeechModel& model, ExecContext context,
                            std::span<const std::vector<float>> recordings);

  const Outputs& reference() const { return reference_; }

  // What `model` says, in a state of its own: it may be the reference model whose layers were changed in
  // place. An observer may watch. The bits do not depend on the number of threads. Errors: bad_checkpoint (NaN or infinity),
  // invalid_argument for one that is no version of the reference model.
  Result<Outputs> run(const models::SpeechModel& model, RunObserver* observer = nullptr) const;

 private:
  Probe() = default;

  ExecContext context_;
  std::vector<int> interface_;  // what a version of the model has in common with it
  std::vector<Utterance> utterances_;
  Outputs reference_;
};

// Nats: the mean over rows of the Kullback-Leibler divergence of `other` from `reference`, plus the mean
// absolute difference of the token scores. Not negative; 0 for the same bits. Both of one Probe.
double divergence(const Outputs& reference, const Outputs& other);
// Of any log-probability or token score.
double greatest_difference(const Outputs& reference, const Outputs& other);
bool same_bits(const Outputs& reference, const Outputs& other);

}  // namespace oasr::calib
