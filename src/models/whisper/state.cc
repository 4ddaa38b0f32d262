#include "models/whisper/state.h"

#include <fmt/format.h>

#include <algorithm>

#include "decode/scores.h"
#include "kernels/rows/op.h"

namespace oasr::models::whisper {
namespace {

// Tokens of one decoder pass. Longer prompts run in several passes, with the same bits: a row does
// not depend on what is computed beside it.
constexpr std::int64_t kPassTokens = 64;

// Windows that a GPU encodes in one pass: enough to keep it busy.
constexpr int kEncodedTogether = 16;

constexpr std::string_view kEncoderName = "the encoder";

cache::KvPool::Geometry self_geometry(const Config& config, int rows) {
  return {.slots = rows + 1,
          .layers = config.decoder_layers,
          .heads = config.decoder_attention_heads,
          .head_dim = config.decoder_head_dim(),
          .capacity = config.max_target_positions,
          .storage = DType::f32};
}

cache::KvPool::Geometry cross_geometry(const Config& config, int windows, DType storage) {
  return {.slots = windows,
          .layers = config.decoder_layers,
          .heads = config.decoder_attention_heads,
          .head_dim = config.decoder_head_dim(),
          .capacity = config.max_source_positions,
          .storage = storage};
}

int encoded_together(const StateOptions& options, const Gpu* gpu) {
  return gpu == nullptr ? 1 : std::min(options.windows, kEncodedTogether);
}

// Of a decoder pass.
std::int64_t pass_tokens(const StateOptions& options) { return std::max<std::int64_t>(kPassTokens, options.rows); }

// Every row may have a probe.
std::int64_t head_rows(const StateOptions& options) { return 2 * std::int64_t{options.rows}; }

std::int64_t logits_floats(const Config& config, const StateOptions& options) {
  return std::max(pass_tokens(options), head_rows(options)) * std::int64_t{config.vocab_size};
}

}  // namespace

StateMemory memory_on_gpu(const Config& config, const StateOptions& options) {
  return {.encoder = EncoderBuffers::bytes_on_gpu(config, std::min(options.windows, kEncodedTogether)),
          .decoder = DecoderBuffers::bytes(config, pass_tokens(options), head_rows(options)),
          .keys_values = cache::KvPool::bytes(self_geometry(config, options.rows)) +
                         cache::KvPool::bytes(cross_geometry(config, options.windows, options.cross_storage)),
          .logits = static_cast<std::size_t>(logits_floats(config, options)) * sizeof(float)};
}

Status check_memory(const Config& config, const StateOptions& options, std::size_t free) {
  const StateMemory memory = memory_on_gpu(config, options);
  if (memory.total() <= free) return {};
  const int rows = options.rows / options.windows;
  int fits = options.windows;
  do {
    --fits;
  } while (fits > 0 &&
           memory_on_gpu(config, {.windows = fits, .rows = fits * rows, .cross_storage = options.cross_storage,
                                  .alignment_heads = {}}).total() > free);
  const auto mib = [](std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  return unexpected(
      ErrorCode::unsupported,
      fmt::format("decoding {} windows at a time takes {:.1f} MiB of GPU memory (encoder {:.1f}, decoder {:.1f}, keys and "
                  "values {:.1f}, logits {:.1f}), and {:.1f} MiB are free",
                  options.windows, mib(memory.total()), mib(memory.encoder), mib(memory.decoder), mib(memory.keys_values),
                  mib(memory.logits), mib(free)),
      "device", fits > 0 ? fmt::format("use a batch size of {} or less", fits) : "use another GPU, or --device cpu");
}

void FaultLog::not_finite(std::string_view layer, std::int64_t row) {
  if (layer_.empty()) layer_ = layer;
  RelayObserver::not_finite(layer, row);
}

void FaultLog::settle(std::span<const decode::RowId> rows, std::string_view fallback) {
  if (rows.empty() && layer_.empty()) return;
  const std::string layer = layer_.empty() ? std::string(fallback) : layer_;
  layer_.clear();
  for (const decode::RowId row : rows) faults_.push_back({layer, row});
  if (rows.empty()) faults_.push_back({layer, -1});
}

std::optional<Fault> FaultLog::take() {
  if (faults_.empty()) return std::nullopt;
  Fault fault = std::move(faults_.front());
  faults_.erase(faults_.begin());
  return fault;
}

State::State(std::shared_ptr<const Network> network, ExecContext context, StateOptions options)
    : network_(std::move(network)),
      faults_(context.observer),
      context_(context),
      alignment_heads_(std::move(options.alignment_heads)),
      encoder_buffers_(network_->config, encoded_together(options, context.gpu), context.gpu),
      decoder_buffers_(network_->config, pass_tokens(options), head_rows(options), context.gpu),
      self_(self_geometry(network_->config, options.rows), context.gpu),
      cross_(cross_geometry(network_->config, options.windows, options.cross_storage), context.gpu),
      rows_(options.rows),
      window_open_(static_cast<std::size_t>(options.windows)),
      room_(context.gpu) {
  pieces_.reserve(static_cast<std::size_t>(decoder_buffers_.tokens));
  for (const kernels::KvCache& cache :
       {encoder_buffers_.keys_values.at(0, 0), self_.at(0, 0), cross_.at(0, 0)}) {
    kernels::attention_reserve(context_, cache);
  }
  network_->layers.reserve(context_);
  context_.observer = &faults_;
  bad_rows_.reserve(static_cast<std::size_t>(2 * options.rows));
  finite_.reserve(static_cast<std::size_t>(2 * options.rows));
  read_.reserve(static_cast<std::size_t>(decoder_buffers_.tokens + options.rows));
  if (context.gpu != nullptr) logits_ = layers::Buffer(logits_floats(network_->config, options), context.gpu);
}

// Windows of one pass of the encoder. A processor gains nothing by more than one, and observers are told of one.
std::size_t State::windows_together() const {
  const bool watched = faults_.wants_inputs() || faults_.wants_outputs();
  return watched ? 1 : static_cast<std::size_t>(encoder_buffers_.windows);
}

WindowId State::take_window() {
  const auto free = std::ranges::find(window_open_, false);
  CHECK(free != window_open_.end(), "more windows than the state was made for");
  *free = true;
  return static_cast<WindowId>(free - window_open_.begin());
}

void State::encode(std::span<const MelWindow> windows, std::span<WindowId> ids) {
  CHECK(ids.size() == windows.size(), "an id for every window");
  std::size_t taken = 0;
  try {
    while (taken < windows.size()) {
      const std::size_t first = taken, count = std::min(windows_together(), windows.size() - first);
      while (taken < first + count) ids[taken++] = take_window();
      encode_together(windows.subspan(first, count), ids.subspan(first, count));
    }
  } catch (...) {
    for (const WindowId id : ids.first(taken)) release(id);
    throw;
  }
}

// One pass.
void State::encode_together(std::span<const MelWindow> windows, std::span<const WindowId> ids) {
  as_graph(context_.gpu, Starts::after, [&] {
    const Matrix output = network_->encoder.forward(context_, windows, encoder_buffers_);
    network_->decoder.encode_windows(context_, output, ids, cross_, encoder_buffers_);
    faults_.audio_rows(-1);
    if (context_.gpu != nullptr) context_.gpu->at_layer(kEncoderName);
    if (const auto found = kernels::first_not_finite(context_, output)) faults_.not_finite(kEncoderName, found.row);
  }, "encoder");
  if (context_.gpu != nullptr) {
    context_.gpu->wait();
    context_.gpu->tell(faults_);
  }
  faults_.settle({}, {});
}

void State::release(WindowId window) {
  CHECK(window >= 0 && window < static_cast<int>(window_open_.size()) &&
            window_open_[static_cast<std::size_t>(window)],
        "releasing a window that is not open");
  window_open_[static_cast<std::size_t>(window)] = false;
}

decode::RowId State::open_row(WindowId window) {
  CHECK(window >= 0 && window < static_cast<int>(window_open_.size()) &&
            window_open_[static_cast<std::size_t>(window)],
        "a row of a window that is not open");
  const decode::RowId row = rows_.open(window);
  self_.truncate(rows_.slot(row), 0);
  return row;
}

void State::close_row(decode::RowId row) { rows_.close(row); }

int State::length(decode::RowId row) const {
  return static_cast<int>(self_.length(rows_.slot(row)));
}

void State::truncate(decode::RowId row, int length) { self_.truncate(rows_.slot(row), length); }

void State::reorder(std::span<const decode::RowId> rows, std::span<const decode::RowId> parents) {
  self_.copy(context_, rows_.reorder(rows, parents));
}

void State::head(Matrix x, std::span<float> logits) {
  const std::int64_t vocabulary = vocabulary_size();
  CHECK(static_cast<std::int64_t>(logits.size()) == x.rows * vocabulary, "logits are [rows, vocabulary]");
  if (context_.gpu == nullptr) {
    network_->decoder.logits(context_, x, {logits.data(), x.rows, vocabulary, vocabulary});
    return;
  }
  const Matrix out = logits_.matrix(x.rows, vocabulary);
  network_->decoder.logits(context_, x, out);
  kernels::to_host(context_, out, logits);
  context_.gpu->tell(faults_);
}

void State::score(std::span<const Input> inputs, std::span<float> logits) {
  if (inputs.empty()) return;
  as_graph(context_.gpu, Starts::early, [&] { forward(inputs, logits); }, "decoder step");
  check_logits(inputs, logits);
}

// Runs the decoder over all inputs, in passes of as many tokens as its buffers hold, and the head.
void State::forward(std::span<const Input> inputs, std::span<float> logits) {
  const auto probes = std::ranges::count_if(inputs, [](const Input& i) { return i.probe >= 0; });
  const std::int64_t d = network_->config.d_model;
  const Matrix last = decoder_buffers_.last.matrix(static_cast<std::int64_t>(inputs.size()) + probes, d);
  std::size_t next = 0, taken = 0;  // the first `taken` tokens of input `next` are done
  std::int64_t filled = 0;          // rows of `last`
  while (next < inputs.size()) {
    const std::size_t first = next, taken_before = taken;
    auto room = static_cast<std::size_t>(decoder_buffers_.tokens);
    pieces_.clear();
    while (next < inputs.size() && room > 0) {
      const Input& input = inputs[next];
      CHECK(!input.tokens.empty(), "an input without tokens");
      const std::size_t count = std::min(room, input.tokens.size() - taken);
      pieces_.push_back({.slot = rows_.slot(input.row),
                         .window = rows_.window(input.row),
                         .tokens = input.tokens.subspan(taken, count)});
      room -= count;
      taken += count;
      if (taken == input.tokens.size()) ++next, taken = 0;
    }
    const Matrix x =
        network_->decoder.forward(context_, pieces_, self_, cross_, decoder_buffers_);
    read_.clear();
    std::int32_t row = 0;
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const auto begin = static_cast<std::int32_t>(i == 0 ? taken_before : 0);
      const auto count = static_cast<std::int32_t>(pieces_[i].tokens.size());
      const std::int32_t probe = inputs[first + i].probe - begin;
      if (probe >= 0 && probe < count) read_.push_back(row + probe);
      row += count;
      if (first + i < next) read_.push_back(row - 1);
    }
    const auto count = static_cast<std::int64_t>(read_.size());
    kernels::gather_rows(context_, x, read_, last.row_range(filled, count));
    filled += count;
  }
  head(last, logits);
}

// A row of logits that is not finite is a fault of its sequence: of an input's row or its probe's, in
// the order of score().
void State::check_logits(std::span<const Input> inputs, std::span<const float> logits) {
  bad_rows_.clear();
  const auto vocabulary = static_cast<std::size_t>(vocabulary_size());
  finite_.resize(logits.size() / vocabulary);
  context_.pool->parallel_for(static_cast<std::int64_t>(finite_.size()), [&](std::int64_t row, int) {
    const auto i = static_cast<std::size_t>(row);
    finite_[i] = decode::all_finite(logits.subspan(i * vocabulary, vocabulary)) ? 1 : 0;
  });
  std::size_t row = 0;
  for (const Input& input : inputs) {
    bool finite = finite_[row++] != 0;
    if (input.probe >= 0) finite = finite_[row++] != 0 && finite;
    if (!finite) bad_rows_.push_back(input.row);
  }
  faults_.settle(bad_rows_, "the output head");
}

std::vector<float> State::alignment(WindowId window, std::span<const TokenId> tokens,
                                    std::span<float> logits) {
  CHECK(window >= 0 && window < static_cast<int>(window_open_.size()) &&
            window_open_[static_cast<std::size_t>(window)],
        "alignment on a window that is not open");
  const int slot = self_.geometry().slots - 1;
  self_.truncate(slot, 0);
  const auto pass = static_cast<std::size_t>(std::min<std::int64_t>(kPassTokens, decoder_buffers_.tokens));
  AlignmentWeights weights(alignment_heads_, network_->config.decoder_attention_heads,
                           static_cast<std::int64_t>(tokens.size()),
                           network_->config.max_source_positions,
                           static_cast<std::int64_t>(std::min(pass, tokens.size())), context_.gpu);
  const auto vocabulary = static_cast<std::size_t>(vocabulary_size());
  for (std::size_t first = 0; first < tokens.size(); first += pass) {
    const Piece piece{slot, window, tokens.subspan(first, std::min(pass, tokens.size() - first))};
    const Matrix x = network_->decoder.forward(context_, {&piece, 1}, self_, cross_,
                                                       decoder_buffers_, &weights);
    if (logits.empty()) continue;
    head(x, logits.subspan(first * vocabulary, static_cast<std::size_t>(x.rows) * vocabulary));
  }
  if (!decode::all_finite(logits)) faults_.not_finite("the output head", 0);
  auto chosen = weights.take(context_);
  if (context_.gpu != nullptr) context_.gpu->tell(faults_);
  faults_.settle({}, {});
  return chosen;
}

std::vector<float> State::encoder_output() {
  const Matrix output = encoder_buffers_.normed.row_range(0, network_->config.max_source_positions);
  std::vector<float> values(static_cast<std::size_t>(output.rows * output.columns));
  kernels::to_host(context_, output, values);
  return values;
}

}  // namespace oasr::models::whisper
