#include "api/timed_model.h"

#include <utility>

#include "base/stopwatch.h"

namespace oasr {
namespace {

using models::AedState;
using models::WindowId;

// Adds what a GPU (null: there is none) is given to do while this lives.
class LaunchCount {
 public:
  LaunchCount(const Gpu* gpu, Launches& sum) : gpu_(gpu), sum_(sum), before_(launches_of(gpu)) {}
  ~LaunchCount() {
    const Launches after = launches_of(gpu_);
    sum_.kernels += after.kernels - before_.kernels;
    sum_.graphs += after.graphs - before_.graphs;
    sum_.alone += after.alone - before_.alone;
  }
  LaunchCount(const LaunchCount&) = delete;
  LaunchCount& operator=(const LaunchCount&) = delete;

 private:
  const Gpu* gpu_;
  Launches& sum_;
  Launches before_;
};

class TimedState final : public AedState {
 public:
  TimedState(std::unique_ptr<AedState> state, const Gpu* gpu, std::shared_ptr<Timings> timings)
      : state_(std::move(state)), gpu_(gpu), timings_(std::move(timings)) {}

  int vocabulary_size() const override { return state_->vocabulary_size(); }
  int context_size() const override { return state_->context_size(); }

  std::span<float> room(std::size_t logits) override { return state_->room(logits); }
  void score(std::span<const Input> inputs, std::span<float> logits) override {
    std::size_t tokens = 0;
    for (const auto& input : inputs) tokens += input.tokens.size();
    const bool prompt = tokens > inputs.size();
    const Stopwatch watch(prompt ? timings_->prompt_seconds : timings_->step_seconds);
    const LaunchCount count(gpu_, prompt ? timings_->prompt_launches : timings_->step_launches);
    (prompt ? timings_->prompts : timings_->steps) += 1;
    if (!prompt) timings_->step_rows += static_cast<std::int64_t>(inputs.size());
    state_->score(inputs, logits);
  }

  int length(decode::RowId row) const override { return state_->length(row); }
  void truncate(decode::RowId row, int length) override { state_->truncate(row, length); }
  void reorder(std::span<const decode::RowId> rows,
               std::span<const decode::RowId> parents) override {
    state_->reorder(rows, parents);
  }

  void encode(std::span<const models::MelWindow> windows, std::span<WindowId> ids) override {
    const Stopwatch watch(timings_->encode_seconds);
    const LaunchCount count(gpu_, timings_->encode_launches);
    timings_->windows += static_cast<std::int64_t>(windows.size());
    state_->encode(windows, ids);
  }
  void release(WindowId window) override { state_->release(window); }
  decode::RowId open_row(WindowId window) override { return state_->open_row(window); }
  void close_row(decode::RowId row) override { state_->close_row(row); }
  std::vector<float> alignment(WindowId window, std::span<const TokenId> tokens,
                               std::span<float> logits) override {
    const Stopwatch watch(timings_->prompt_seconds);
    const LaunchCount count(gpu_, timings_->prompt_launches);
    ++timings_->prompts;
    return state_->alignment(window, tokens, logits);
  }
  std::optional<models::Fault> take_fault() override { return state_->take_fault(); }
  std::vector<float> encoder_output() override { return state_->encoder_output(); }

 private:
  std::unique_ptr<AedState> state_;
  const Gpu* gpu_;
  std::shared_ptr<Timings> timings_;
};

class TimedModel final : public models::AedModel {
 public:
  TimedModel(std::shared_ptr<const models::AedModel> model, std::shared_ptr<Timings> timings)
      : model_(std::move(model)), timings_(std::move(timings)) {}

  const models::ModelInfo& info() const override { return model_->info(); }
  const Tokenizer& tokenizer() const override { return model_->tokenizer(); }
  const layers::LayerList& layers() const override { return model_->layers(); }
  int n_mels() const override { return model_->n_mels(); }
  int window_frames() const override { return model_->window_frames(); }
  int context_size() const override { return model_->context_size(); }
  bool multilingual() const override { return model_->multilingual(); }
  const models::AedTokens& tokens() const override { return model_->tokens(); }

  Result<std::unique_ptr<AedState>> new_state(ExecContext context, int windows,
                                              int rows) const override {
    auto state = TRY(model_->new_state(context, windows, rows));
    return std::unique_ptr<AedState>(new TimedState(std::move(state), context.gpu, timings_));
  }

 private:
  std::shared_ptr<const models::AedModel> model_;
  std::shared_ptr<Timings> timings_;
};

}  // namespace

Launches launches_of(const Gpu* gpu) {
  if (gpu == nullptr) return {};
  const Gpu::Counts counts = gpu->counts();
  return {.kernels = counts.kernels, .graphs = counts.graphs, .alone = counts.alone};
}

std::shared_ptr<const models::AedModel> timed_model(std::shared_ptr<const models::AedModel> model,
                                                    std::shared_ptr<Timings> timings) {
  return std::make_shared<TimedModel>(std::move(model), std::move(timings));
}

}  // namespace oasr
