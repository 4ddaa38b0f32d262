// Decoding with Whisper: encoded windows, and rows that grow token by token over them.
#pragma once

#include <memory>
#include <vector>

#include "cache/row_table.h"
#include "models/speech_model.h"
#include "models/whisper/network.h"

namespace oasr::models::whisper {

struct StateOptions {
  int windows = 1, rows = 1;           // open at a time
  DType cross_storage = DType::f32;    // cross-attention keys and values: f32, or f16 (rounded)
  std::vector<AlignmentHead> alignment_heads;
};

// What a state reserves on a GPU, in bytes.
struct StateMemory {
  std::size_t encoder = 0, decoder = 0, keys_values = 0, logits = 0;

  std::size_t total() const { return encoder + decoder + keys_values + logits; }
};
StateMemory memory_on_gpu(const Config& config, const StateOptions& options);
// unsupported if that is more than `free` bytes, with the sum and with a number of windows that fit.
Status check_memory(const Config& config, const StateOptions& options, std::size_t free);

// Keeps what is not finite in a run, and hands everything on to another observer.
class FaultLog final : public RelayObserver {
 public:
  using RelayObserver::RelayObserver;
  void not_finite(std::string_view layer, std::int64_t row) override;

  // Makes faults of what was told since the last call: one for each of `rows`, or one without a row.
  // `fallback` names the layer when none reported.
  void settle(std::span<const decode::RowId> rows, std::string_view fallback);
  bool pending() const { return !layer_.empty(); }
  std::optional<Fault> take();

 private:
  std::string layer_;  // the first that reported
  std::vector<Fault> faults_;
};

class State final : public AedState {
 public:
  State(std::shared_ptr<const Network> network, ExecContext context, StateOptions options);

  using AedState::encode;
  void encode(std::span<const MelWindow> windows, std::span<WindowId> ids) override;
  void release(WindowId window) override;
  decode::RowId open_row(WindowId window) override;
  void close_row(decode::RowId row) override;
  std::vector<float> alignment(WindowId window, std::span<const TokenId> tokens,
                               std::span<float> logits) override;
  std::optional<Fault> take_fault() override { return faults_.take(); }
  std::vector<float> encoder_output() override;

  int vocabulary_size() const override { return network_->config.vocab_size; }
  int context_size() const override { return network_->config.max_target_positions; }
  void score(std::span<const Input> inputs, std::span<float> logits) override;
  std::span<float> room(std::size_t logits) override { return room_.room(logits); }
  int length(decode::RowId row) const override;
  void truncate(decode::RowId row, int length) override;
  void reorder(std::span<const decode::RowId> rows,
               std::span<const decode::RowId> parents) override;

 private:
  std::size_t windows_together() const;
  WindowId take_window();
  void encode_together(std::span<const MelWindow> windows, std::span<const WindowId> ids);
  void forward(std::span<const Input> inputs, std::span<float> logits);
  // The head on rows x of the decoder; logits [x.rows, V] on the host.
  void head(Matrix x, std::span<float> logits);
  void check_logits(std::span<const Input> inputs, std::span<const float> logits);

  std::shared_ptr<const Network> network_;
  FaultLog faults_;
  ExecContext context_;
  std::vector<AlignmentHead> alignment_heads_;
  EncoderBuffers encoder_buffers_;
  DecoderBuffers decoder_buffers_;
  cache::KvPool self_;           // a slot a row, and one for alignment()
  cache::KvPool cross_;          // a slot a window
  cache::RowTable rows_;
  std::vector<bool> window_open_;
  std::vector<Piece> pieces_;    // of the running pass
  std::vector<std::int32_t> read_;  // rows of the pass that the head reads
  layers::Buffer logits_;        // where a GPU computes them
  HostFloats room_;              // where it copies them
  std::vector<decode::RowId> bad_rows_;
  std::vector<std::uint8_t> finite_;  // by row of logits
};

}  // namespace oasr::models::whisper
