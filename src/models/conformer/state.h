// Open utterances of a Conformer: CtcState.
#pragma once

#include <memory>
#include <vector>

#include "kernels/ctc_beam/op.h"
#include "kernels/ctc_frames/op.h"
#include "models/conformer/network.h"
#include "models/speech_model.h"

namespace oasr::models::conformer {

class State final : public CtcState {
 public:
  State(std::shared_ptr<const Network> network, ExecContext context);

  UtteranceId open(const ChunkMask& mask, bool whole) override;
  void close(UtteranceId utterance) override;
  void accept(UtteranceId utterance, std::span<const float> features) override;
  void finish(UtteranceId utterance) override;
  bool ready(UtteranceId utterance) const override;
  void step(std::span<const UtteranceId> utterances, int width) override;
  void step(std::span<const UtteranceId> utterances) override;
  decode::CtcFrames likeliest(UtteranceId utterance) const override;
  decode::CtcScores scores(UtteranceId utterance) const override;
  bool search(std::span<const UtteranceId> utterances, const decode::CtcBeamOptions& options,
              std::span<std::vector<decode::CtcHypothesis>> hypotheses) override;
  std::int64_t frames(UtteranceId utterance) const override;
  std::vector<float> encoder_output(UtteranceId utterance) override;
  std::optional<Fault> take_fault() override;
  std::unique_ptr<decode::StepScorer> open_decoder(UtteranceId utterance, int rows, int tokens) override;
  Memory memory(UtteranceId utterance) const override;

  bool has_right_to_left() const override { return network_->right.has_value(); }
  void score(std::span<const Item> items) override;

 private:
  struct Utterance {
    Utterance(const Config& config, const ChunkMask& mask, bool whole, Gpu* gpu)
        : cache(config, mask, whole), whole(whole), output_memory(0, gpu) {}
    ConstMatrix output(std::int64_t d) { return output_memory.matrix(cache.frames(), d); }

    EncoderCache cache;
    bool whole;
    bool finished = false;
    std::vector<float> features;    // [n, input_dim], from feature frame rate · cache.frames() on
    layers::Buffer output_memory;   // [frames, D], with room for more
    // Of the last step, in memory of the state, until the next one; one of the two is empty.
    ConstMatrix log_probs;          // [frames, V]
    decode::CtcFrames likeliest;
    std::int64_t first_row = 0;     // of them among the step's
    std::vector<TokenId> newest;    // of the last frame so far: the likeliest, if they were asked for
    bool faulty = false;            // some are not finite, or scores of hypotheses since then
  };

  // Notes what layers report as not finite.
  class Watch final : public RelayObserver {
   public:
    using RelayObserver::RelayObserver;
    void not_finite(std::string_view layer, std::int64_t row) override {
      if (layer_.empty()) layer_ = layer;
      RelayObserver::not_finite(layer, row);
    }
    std::string take() { return std::exchange(layer_, {}); }

   private:
    std::string layer_;
  };

  Utterance& at(UtteranceId utterance) { return *utterances_[static_cast<std::size_t>(utterance)]; }
  const Utterance& at(UtteranceId utterance) const { return *utterances_[static_cast<std::size_t>(utterance)]; }
  std::int64_t feature_frames(const Utterance& utterance) const;
  std::int64_t rows_of_step(const Utterance& utterance) const;
  std::int64_t features_of(std::int64_t rows) const;
  void place_features(std::span<const UtteranceId> utterances);
  void embed(Matrix x);
  void keep(Utterance& utterance, ConstMatrix output);
  Matrix on_host(Matrix x, HostFloats& room);
  void log_softmax(Matrix x);
  // All that a step computes, but not what becomes of it: the encoder's output and the head's logits.
  struct Pass {
    Matrix output, logits;
  };
  Pass compute(std::span<const UtteranceId> utterances, int width);
  void reduce(std::span<const UtteranceId> utterances, Matrix logits, int width);
  void take_likeliest(std::span<const UtteranceId> utterances, std::int64_t rows, int width);
  void take_rows(std::span<const UtteranceId> utterances, Matrix logits);
  void finish_step(std::span<const UtteranceId> utterances, Matrix output);
  // head: the layer, if none has told.
  void note_faults(std::span<const UtteranceId> utterances, const char* head);
  void score_direction(const Decoder& decoder, std::span<const Item> items, bool left);
  void score_pass(const Decoder& decoder, std::span<const Item* const> items, bool left);
  void look_up(const Decoder& decoder, Matrix hidden, std::span<const TokenId> wanted);

  std::shared_ptr<const Network> network_;
  ExecContext context_;
  Watch watch_;
  PositionTable positions_;
  EncoderBuffers buffers_;
  Subsampling::Buffers embed_buffers_;
  // The decoders' rows are apart: utterances are rescored while those of others are still read.
  layers::Buffer features_, embedded_, x_, log_probs_, decoder_logits_;
  layers::Buffer likeliest_, decoder_scores_;  // kernels::CtcFrameRows
  std::int64_t likeliest_rows_ = 0;
  layers::Buffer search_;                      // kernels::CtcBeamMemory
  HostFloats host_log_probs_, host_likeliest_, host_search_, host_decoder_scores_;  // of a GPU
  std::vector<kernels::CtcPiece> frame_pieces_;  // of the running step or pass
  std::vector<unsigned char> faulty_rows_;       // of the last log_softmax(): not finite
  std::vector<Piece> pieces_;                    // of the running step, and their features
  std::vector<ConstMatrix> placed_;
  Matrix all_features_;                          // on a GPU
  std::vector<std::int32_t> embedded_rows_;
  DecoderBuffers decoder_buffers_;
  std::vector<std::unique_ptr<Utterance>> utterances_;  // null: free
  std::vector<Fault> faults_;
};

}  // namespace oasr::models::conformer
