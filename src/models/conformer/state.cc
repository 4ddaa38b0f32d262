#include "models/conformer/state.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>

#include "decode/scores.h"
#include "kernels/rows/op.h"
#include "models/conformer/step_decoder.h"

namespace oasr::models::conformer {
namespace {

bool all_finite(std::span<const float> values) {
  std::uint32_t bad = 0;  // by their bits, side by side: a sum would wait for the one before
  for (const float value : values) bad |= (std::bit_cast<std::uint32_t>(value) & 0x7f80'0000u) == 0x7f80'0000u ? 1u : 0u;
  return bad == 0;
}

}  // namespace

State::State(std::shared_ptr<const Network> network, ExecContext context)
    : network_(std::move(network)),
      context_(context),
      watch_(context.observer),
      positions_(network_->encoder.make_positions()),
      buffers_(context.gpu),
      embed_buffers_(context.gpu),
      features_(0, context.gpu),
      x_(0, context.gpu),
      log_probs_(0, context.gpu),
      decoder_log_probs_(0, context.gpu),
      host_log_probs_(context.gpu),
      host_decoder_log_probs_(context.gpu),
      decoder_buffers_(context.gpu) {
  context_.observer = &watch_;
  network_->layers.reserve(context_);
}

UtteranceId State::open(const ChunkMask& mask, bool whole) {
  auto utterance = std::make_unique<Utterance>(network_->config, mask, whole || mask.chunk_size <= 0, context_.gpu);
  const auto free = std::ranges::find_if(utterances_, [](const auto& slot) { return slot == nullptr; });
  if (free != utterances_.end()) {
    *free = std::move(utterance);
    return static_cast<UtteranceId>(free - utterances_.begin());
  }
  utterances_.push_back(std::move(utterance));
  return static_cast<UtteranceId>(utterances_.size()) - 1;
}

void State::close(UtteranceId utterance) { utterances_[static_cast<std::size_t>(utterance)].reset(); }

void State::accept(UtteranceId id, std::span<const float> features) {
  Utterance& utterance = at(id);
  CHECK(!utterance.finished, "features after the end of the utterance");
  CHECK(features.size() % static_cast<std::size_t>(network_->config.input_dim) == 0, "whole frames of features");
  utterance.features.insert(utterance.features.end(), features.begin(), features.end());
}

void State::finish(UtteranceId utterance) { at(utterance).finished = true; }

std::int64_t State::feature_frames(const Utterance& utterance) const {
  return static_cast<std::int64_t>(utterance.features.size()) / network_->config.input_dim;
}

// Encoder frames that the next step computes: up to the end of a chunk, all that are left of a finished
// utterance; 0: more features are needed first.
std::int64_t State::rows_of_step(const Utterance& utterance) const {
  const std::int64_t possible = network_->config.encoder_frames(feature_frames(utterance));
  if (utterance.whole) return utterance.finished && utterance.cache.frames() == 0 ? possible : 0;
  const std::int64_t chunk = utterance.cache.mask().chunk_size;
  return possible >= chunk || utterance.finished ? std::min(possible, chunk) : 0;
}

bool State::ready(UtteranceId utterance) const { return rows_of_step(at(utterance)) > 0; }

void State::embed(Utterance& utterance, Matrix x) {
  const std::int64_t dim = network_->config.input_dim, rate = network_->config.subsampling_rate();
  const std::int64_t needed = (x.rows - 1) * rate + network_->config.right_context() + 1;
  ConstMatrix features{utterance.features.data(), needed, dim, dim};
  if (context_.gpu != nullptr) {
    features_.reserve(needed * dim);
    const Matrix uploaded = features_.matrix(needed, dim);
    to_device(context_.gpu, uploaded.data, std::span(utterance.features).first(static_cast<std::size_t>(needed * dim)));
    features = uploaded;
  }
  network_->embed.forward(context_, features, x, embed_buffers_);
  utterance.features.erase(utterance.features.begin(), utterance.features.begin() + x.rows * rate * dim);
}

// The new frames of an utterance, the last of those in its cache.
void State::keep(Utterance& utterance, ConstMatrix output) {
  const std::int64_t d = output.columns, frames = utterance.cache.frames(), kept = frames - output.rows;
  layers::Buffer& memory = utterance.output_memory;
  if (memory.floats() < frames * d) {
    layers::Buffer larger(kept == 0 ? frames * d : 2 * frames * d, context_.gpu);
    if (kept > 0) kernels::shift_scale_rows(context_, {.x = memory.matrix(kept, d), .y = larger.matrix(kept, d)});
    memory = std::move(larger);
  }
  kernels::shift_scale_rows(context_, {.x = output, .y = memory.matrix(frames, d).row_range(kept, output.rows)});
}

// The rows where the processor can read and change them.
Matrix State::on_host(Matrix x, HostFloats& room) {
  if (context_.gpu == nullptr) return x;
  const std::span<float> values = room.room(static_cast<std::size_t>(x.rows * x.columns));
  kernels::to_host(context_, x, values);
  context_.gpu->tell(watch_);
  return {values.data(), x.rows, x.columns, x.columns};
}

// x -= log Σ exp x, row by row; a row that is not finite stays as it is.
void State::log_softmax(Matrix x) {
  faulty_rows_.assign(static_cast<std::size_t>(x.rows), 0);
  context_.pool->parallel_for(x.rows, [&](std::int64_t row, int) {
    const std::span<float> values(x.row(row), static_cast<std::size_t>(x.columns));
    bool finite = all_finite(values);
    if (finite) {
      const float total = decode::log_sum_exp(values);
      for (float& value : values) value -= total;
      finite = all_finite(values);
    }
    faulty_rows_[static_cast<std::size_t>(row)] = finite ? 0 : 1;
  });
}

void State::step(std::span<const UtteranceId> utterances) {
  const std::int64_t d = network_->config.encoder.output_size, vocabulary = network_->config.output_dim;
  std::int64_t rows = 0;
  pieces_.clear();
  for (const UtteranceId id : utterances) {
    pieces_.push_back({.cache = &at(id).cache, .rows = rows_of_step(at(id))});
    CHECK(pieces_.back().rows > 0, "utterances that are ready");
    rows += pieces_.back().rows;
  }
  x_.reserve(rows * d);
  log_probs_.reserve(rows * vocabulary);
  const Matrix x = x_.matrix(rows, d);
  std::int64_t row = 0;
  for (std::size_t i = 0; i < utterances.size(); ++i) {
    embed(at(utterances[i]), x.row_range(row, pieces_[i].rows));
    row += pieces_[i].rows;
  }
  Matrix output;
  const Matrix logits = log_probs_.matrix(rows, vocabulary);
  // Of a few streams all kernels are small.
  constexpr std::int64_t kFewRows = 64;
  as_graph(context_.gpu, rows <= kFewRows ? Starts::early : Starts::after, [&] {
    output = network_->encoder.forward(context_, x, pieces_, positions_, buffers_);
    network_->ctc_lo.forward(context_, output, logits);
  }, "encoder");
  const Matrix log_probs = on_host(logits, host_log_probs_);
  log_softmax(log_probs);
  row = 0;
  for (std::size_t i = 0; i < utterances.size(); ++i) {
    const std::int64_t count = pieces_[i].rows;
    Utterance& utterance = at(utterances[i]);
    keep(utterance, output.row_range(row, count));
    utterance.log_probs = log_probs.row_range(row, count);
    const auto first = faulty_rows_.begin() + row;
    utterance.faulty = std::any_of(first, first + count, [](unsigned char faulty) { return faulty != 0; });
    row += count;
  }
  note_faults(utterances);
}

// A layer that met NaN names itself; whose it was shows in the log-probabilities, unless int8 made
// zeros of it: then it may be anybody's.
void State::note_faults(std::span<const UtteranceId> utterances) {
  const std::string layer = watch_.take();
  const auto note = [&](UtteranceId id) {
    faults_.push_back({.layer = layer.empty() ? "ctc.ctc_lo" : layer, .row = id});
  };
  const std::size_t before = faults_.size();
  for (const UtteranceId id : utterances) {
    if (at(id).faulty) note(id);
  }
  if (faults_.size() == before && !layer.empty()) std::ranges::for_each(utterances, note);
}

decode::CtcScores State::scores(UtteranceId utterance) const {
  const ConstMatrix rows = at(utterance).log_probs;
  return {.values = {rows.data, static_cast<std::size_t>(rows.rows * rows.columns)},
          .frames = static_cast<int>(rows.rows),
          .vocabulary = network_->config.output_dim,
          .blank = network_->config.blank};
}

std::int64_t State::frames(UtteranceId utterance) const { return at(utterance).cache.frames(); }

std::vector<float> State::encoder_output(UtteranceId utterance) {
  const ConstMatrix output = at(utterance).output(network_->config.encoder.output_size);
  std::vector<float> values(static_cast<std::size_t>(output.rows * output.columns));
  kernels::to_host(context_, output, values);
  return values;
}

std::optional<Fault> State::take_fault() {
  if (faults_.empty()) return {};
  Fault fault = std::move(faults_.back());
  faults_.pop_back();
  return fault;
}

std::unique_ptr<decode::StepScorer> State::open_decoder(UtteranceId id, int rows, int tokens) {
  if (!network_->left) return nullptr;
  return std::make_unique<StepDecoder>(*network_, context_, at(id).output(network_->config.encoder.output_size), rows,
                                       tokens);
}

CtcState::Memory State::memory(UtteranceId id) const {
  const Utterance& utterance = at(id);
  return {.caches = utterance.cache.bytes(),
          .other = (utterance.features.capacity() + static_cast<std::size_t>(utterance.output_memory.floats()) +
                    static_cast<std::size_t>(utterance.log_probs.rows * utterance.log_probs.columns)) *
                   sizeof(float)};
}

void State::score(std::span<const Item> items) {
  CHECK(network_->left.has_value(), "a model with a decoder");
  score_direction(*network_->left, items, true);
  if (network_->right) score_direction(*network_->right, items, false);
}

// One pass over all hypotheses of an utterance after the other: sos and the tokens in, log-probabilities
// of the tokens and eos out.
void State::score_direction(const Decoder& decoder, std::span<const Item> items, bool left) {
  const Config& config = network_->config;
  const std::int64_t d = config.encoder.output_size;
  std::map<int, std::vector<const Item*>> by_utterance;
  for (const Item& item : items) {
    if (left || !item.right.empty()) by_utterance[item.utterance].push_back(&item);
  }
  const int heads = config.decoder->attention_heads, head_dim = static_cast<int>(d) / heads;
  for (const auto& [id, wanted] : by_utterance) {
    Utterance& utterance = at(id);
    CHECK(utterance.cache.frames() > 0, "an utterance with frames");
    std::vector<std::vector<TokenId>> inputs;
    std::size_t longest = 0;
    for (const Item* item : wanted) {
      std::vector<TokenId> tokens = {config.sos};
      tokens.insert(tokens.end(), item->tokens.begin(), item->tokens.end());
      if (!left) std::reverse(tokens.begin() + 1, tokens.end());
      longest = std::max(longest, tokens.size());
      inputs.push_back(std::move(tokens));
    }
    cache::KvPool cross({.slots = 1, .layers = decoder.blocks(), .heads = heads, .head_dim = head_dim,
                         .capacity = utterance.cache.frames(), .storage = DType::f32},
                        context_.gpu);
    cache::KvPool self({.slots = static_cast<int>(inputs.size()), .layers = decoder.blocks(), .heads = heads,
                        .head_dim = head_dim, .capacity = static_cast<std::int64_t>(longest), .storage = DType::f32},
                       context_.gpu);
    std::vector<TokenPiece> pieces;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      pieces.push_back({.slot = static_cast<int>(i), .utterance = 0, .tokens = inputs[i]});
    }
    Matrix logits;
    as_graph(context_.gpu, Starts::after, [&] {
      decoder.encode(context_, utterance.output(d), 0, cross, decoder_buffers_);
      const Matrix hidden = decoder.forward(context_, pieces, self, cross, decoder_buffers_);
      decoder_log_probs_.reserve(hidden.rows * config.output_dim);
      logits = decoder_log_probs_.matrix(hidden.rows, config.output_dim);
      decoder.logits(context_, hidden, logits);
    }, "rescoring");
    const Matrix log_probs = on_host(logits, host_decoder_log_probs_);
    log_softmax(log_probs);
    std::int64_t row = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Item& item = *wanted[i];
      const std::span<float> out = left ? item.left : item.right;
      const std::size_t n = item.tokens.size();
      for (std::size_t t = 0; t < n; ++t) {
        const std::size_t place = left ? t : n - 1 - t;  // the token that step t predicts
        out[place] = log_probs.row(row++)[item.tokens[place]];
      }
      out[n] = log_probs.row(row++)[config.eos];
    }
  }
}

}  // namespace oasr::models::conformer
