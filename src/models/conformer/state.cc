#include "models/conformer/state.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "decode/scores.h"
#include "kernels/rows/op.h"
#include "models/conformer/step_decoder.h"

namespace oasr::models::conformer {

State::State(std::shared_ptr<const Network> network, ExecContext context)
    : network_(std::move(network)),
      context_(context),
      watch_(context.observer),
      positions_(network_->encoder.make_positions()),
      buffers_(context.gpu),
      embed_buffers_(context.gpu),
      features_(0, context.gpu),
      embedded_(0, context.gpu),
      x_(0, context.gpu),
      log_probs_(0, context.gpu),
      decoder_logits_(0, context.gpu),
      likeliest_(0, context.gpu),
      decoder_scores_(0, context.gpu),
      search_(0, context.gpu),
      host_log_probs_(context.gpu),
      host_likeliest_(context.gpu),
      host_search_(context.gpu),
      host_decoder_scores_(context.gpu),
      decoder_buffers_(context.gpu) {
  if (context.gpu != nullptr) context.gpu->forget();
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

// Feature frames that `rows` encoder frames are made of.
std::int64_t State::features_of(std::int64_t rows) const {
  return (rows - 1) * network_->config.subsampling_rate() + network_->config.right_context() + 1;
}

// The features of a step's pieces where kernels read them: on the host where they are, on a GPU one after the other. There
// each begins at a multiple of the subsampling rate, with zeros behind it, so that all can be subsampled as one.
void State::place_features(std::span<const UtteranceId> utterances) {
  const std::int64_t dim = network_->config.input_dim, rate = network_->config.subsampling_rate();
  placed_.clear();
  for (std::size_t i = 0; i < utterances.size(); ++i) {
    placed_.push_back({at(utterances[i]).features.data(), features_of(pieces_[i].rows), dim, dim});
  }
  if (context_.gpu == nullptr) return;
  const auto taken = [&](const ConstMatrix& features) {
    return (features.rows + network_->config.right_context() + rate - 1) / rate * rate;
  };
  std::int64_t frames = 0;
  for (const ConstMatrix& features : placed_) frames += taken(features);
  features_.reserve(frames * dim);
  all_features_ = features_.matrix(frames, dim);
  clear(context_.gpu, all_features_.data, static_cast<std::size_t>(frames * dim) * sizeof(float));
  std::int64_t first = 0;
  for (ConstMatrix& features : placed_) {
    const Matrix there = all_features_.row_range(first, features.rows);
    to_device(context_.gpu, there.data, {features.data, static_cast<std::size_t>(features.rows * dim)});
    first += taken(features);
    features = there;
  }
  embedded_.reserve(network_->config.encoder_frames(frames) * network_->config.encoder.output_size);
}

// x: the subsampled pieces. Several on a GPU are subsampled as one, since kernels of one are small; rows that reach over
// a border are left behind.
void State::embed(Matrix x) {
  if (context_.gpu == nullptr || pieces_.size() == 1) {
    std::int64_t row = 0;
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      network_->embed.forward(context_, placed_[i], x.row_range(row, pieces_[i].rows), embed_buffers_);
      row += pieces_[i].rows;
    }
    return;
  }
  const std::int64_t rate = network_->config.subsampling_rate();
  const Matrix all = embedded_.matrix(network_->config.encoder_frames(all_features_.rows), x.columns);
  network_->embed.forward(context_, all_features_, all, embed_buffers_);
  embedded_rows_.clear();
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const std::int64_t first = (placed_[i].data - all_features_.data) / all_features_.columns / rate;
    for (std::int64_t row = 0; row < pieces_[i].rows; ++row) {
      embedded_rows_.push_back(static_cast<std::int32_t>(first + row));
    }
  }
  kernels::gather_rows(context_, all, embedded_rows_, x);
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

// Log-probabilities of logits, row by row; a row that is not finite stays as it is.
void State::log_softmax(Matrix x) {
  faulty_rows_.assign(static_cast<std::size_t>(x.rows), 0);
  context_.pool->parallel_for(x.rows, [&](std::int64_t row, int) {
    const float norm = decode::log_softmax({x.row(row), static_cast<std::size_t>(x.columns)});
    faulty_rows_[static_cast<std::size_t>(row)] = std::isnan(norm) ? 1 : 0;
  });
}

State::Pass State::compute(std::span<const UtteranceId> utterances, int width) {
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
  likeliest_.reserve(kernels::CtcFrameRows::floats(rows, width));
  const Matrix x = x_.matrix(rows, d);
  place_features(utterances);
  Pass pass{.output = {}, .logits = log_probs_.matrix(rows, vocabulary)};
  // Of a few streams all kernels are small.
  constexpr std::int64_t kFewRows = 64;
  as_graph(context_.gpu, rows <= kFewRows ? Starts::early : Starts::after, [&] {
    embed(x);
    pass.output = network_->encoder.forward(context_, x, pieces_, positions_, buffers_);
    network_->ctc_lo.forward(context_, pass.output, pass.logits);
    if (width > 0) reduce(utterances, pass.logits, width);
  }, "encoder");
  return pass;
}

void State::step(std::span<const UtteranceId> utterances, int width) {
  CHECK(width >= 1 && width <= network_->config.output_dim, "as many tokens as the vocabulary has, at most");
  for (const UtteranceId id : utterances) {
    CHECK(at(id).cache.frames() == 0 || at(id).newest.size() == static_cast<std::size_t>(width), "one width an utterance");
  }
  const Pass pass = compute(utterances, width);
  take_likeliest(utterances, pass.logits.rows, width);
  finish_step(utterances, pass.output);
}

void State::step(std::span<const UtteranceId> utterances) {
  for (const UtteranceId id : utterances) CHECK(at(id).newest.empty(), "one width an utterance");
  const Pass pass = compute(utterances, 0);
  take_rows(utterances, pass.logits);
  finish_step(utterances, pass.output);
}

// The likeliest tokens of all rows, in likeliest_.
void State::reduce(std::span<const UtteranceId> utterances, Matrix logits, int width) {
  frame_pieces_.clear();
  for (std::size_t i = 0; i < utterances.size(); ++i) {
    frame_pieces_.push_back({.rows = pieces_[i].rows, .before = at(utterances[i]).newest});
  }
  kernels::ctc_frames(context_, {.logits = logits,
                                 .blank = network_->config.blank,
                                 .width = width,
                                 .pieces = frame_pieces_,
                                 .out = {likeliest_.matrix(1, likeliest_.floats()).data, logits.rows, width}});
}

// Where the processor can read them.
void State::take_likeliest(std::span<const UtteranceId> utterances, std::int64_t rows, int width) {
  const Matrix numbers = on_host(likeliest_.matrix(1, kernels::CtcFrameRows::floats(rows, width)), host_likeliest_);
  const kernels::CtcFrameRows all(numbers.data, rows, width);
  likeliest_rows_ = rows;
  std::int64_t row = 0;
  for (std::size_t i = 0; i < utterances.size(); ++i) {
    const std::int64_t frames = pieces_[i].rows;
    const auto count = static_cast<std::size_t>(frames), tokens = static_cast<std::size_t>(frames * width);
    Utterance& utterance = at(utterances[i]);
    utterance.log_probs = {};
    utterance.likeliest = {.frames = static_cast<int>(frames),
                           .width = width,
                           .vocabulary = network_->config.output_dim,
                           .blank = network_->config.blank,
                           .likeliest = {all.likeliest + row * width, tokens},
                           .again = {all.again + row * width, tokens},
                           .blanks = {all.blanks + row, count}};
    utterance.first_row = row;
    utterance.newest.clear();
    for (const auto& token : utterance.likeliest.tokens(static_cast<int>(frames) - 1)) utterance.newest.push_back(token.token);
    const std::span<const float> norms(all.norms + row, count);
    utterance.faulty = std::ranges::any_of(norms, [](float norm) { return std::isnan(norm); });
    row += frames;
  }
}

void State::take_rows(std::span<const UtteranceId> utterances, Matrix logits) {
  const Matrix log_probs = on_host(logits, host_log_probs_);
  log_softmax(log_probs);
  std::int64_t row = 0;
  for (std::size_t i = 0; i < utterances.size(); ++i) {
    const std::int64_t count = pieces_[i].rows;
    Utterance& utterance = at(utterances[i]);
    utterance.log_probs = log_probs.row_range(row, count);
    utterance.likeliest = {};
    const auto first = faulty_rows_.begin() + row;
    utterance.faulty = std::any_of(first, first + count, [](unsigned char faulty) { return faulty != 0; });
    row += count;
  }
}

void State::finish_step(std::span<const UtteranceId> utterances, Matrix output) {
  const std::int64_t used = network_->config.subsampling_rate() * network_->config.input_dim;  // features of a row
  std::int64_t row = 0;
  for (std::size_t i = 0; i < utterances.size(); ++i) {
    std::vector<float>& features = at(utterances[i]).features;
    features.erase(features.begin(), features.begin() + pieces_[i].rows * used);
    keep(at(utterances[i]), output.row_range(row, pieces_[i].rows));
    row += pieces_[i].rows;
  }
  note_faults(utterances, "ctc.ctc_lo");
}

// A layer that met NaN names itself; whose it was shows in the log-probabilities, unless int8 made
// zeros of it: then it may be anybody's.
void State::note_faults(std::span<const UtteranceId> utterances, const char* head) {
  const std::string layer = watch_.take();
  const auto note = [&](UtteranceId id) {
    faults_.push_back({.layer = layer.empty() ? head : layer, .row = id});
  };
  const std::size_t before = faults_.size();
  for (const UtteranceId id : utterances) {
    if (at(id).faulty) note(id);
  }
  if (faults_.size() == before && !layer.empty()) std::ranges::for_each(utterances, note);
}

decode::CtcFrames State::likeliest(UtteranceId utterance) const {
  CHECK(at(utterance).likeliest.frames > 0, "a step that was to tell the likeliest tokens");
  return at(utterance).likeliest;
}

decode::CtcScores State::scores(UtteranceId utterance) const {
  const ConstMatrix rows = at(utterance).log_probs;
  CHECK(rows.rows > 0, "a step that was to tell of every token");
  return {.values = {rows.data, static_cast<std::size_t>(rows.rows * rows.columns)},
          .frames = static_cast<int>(rows.rows),
          .vocabulary = network_->config.output_dim,
          .blank = network_->config.blank};
}

bool State::search(std::span<const UtteranceId> utterances, const decode::CtcBeamOptions& options,
                   std::span<std::vector<decode::CtcHypothesis>> hypotheses) {
  const int first_beam = std::min(options.first_beam, network_->config.output_dim), beam = options.second_beam;
  if (context_.gpu == nullptr || options.context != nullptr) return false;
  if (first_beam > kernels::kMostCtcBeam || beam > kernels::kMostCtcBeam) return false;
  CHECK(hypotheses.size() == utterances.size(), "room for every utterance");
  std::vector<kernels::CtcBeamUtterance> places;
  int width = 0;
  for (const UtteranceId id : utterances) {
    const Utterance& utterance = at(id);
    const auto& likeliest = utterance.likeliest;
    CHECK(utterance.whole && likeliest.frames > 0 && !utterance.faulty, "a whole utterance whose frames were told");
    width = likeliest.width;
    places.push_back({static_cast<std::int32_t>(utterance.first_row), likeliest.frames});
  }
  const auto count = static_cast<std::int64_t>(places.size()), rows = likeliest_rows_;
  search_.reserve(kernels::CtcBeamMemory::floats(rows, count, beam));
  const kernels::CtcBeamMemory memory(search_.matrix(1, search_.floats()).data, rows, count, beam);
  kernels::ctc_prefix_beam(
      *context_.gpu,
      {.frames = {likeliest_.matrix(1, likeliest_.floats()).data, rows, width},
       .rows = rows,
       .width = width,
       .blank = network_->config.blank,
       .first_beam = first_beam,
       .second_beam = beam,
       .blank_skip = options.blank_skip.value_or(2),
       .utterances = places,
       .memory = memory});
  const std::int64_t floats = kernels::CtcBeamMemory::read_floats(rows, count, beam);
  const std::span<float> read = host_search_.room(static_cast<std::size_t>(floats));
  context_.gpu->download(read.data(), memory.results, read.size_bytes());
  const auto found = kernels::CtcBeamMemory::read_at(read.data(), count, beam);
  context_.pool->parallel_for(count, [&](std::int64_t i, int) {
    const auto index = static_cast<std::size_t>(i);
    hypotheses[index] = kernels::ctc_hypotheses(found, beam, i, places[index]);
  });
  return true;
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
                    static_cast<std::size_t>(utterance.log_probs.rows * utterance.log_probs.columns) +
                    static_cast<std::size_t>(
                        kernels::CtcFrameRows::floats(utterance.likeliest.frames, utterance.likeliest.width))) *
                   sizeof(float)};
}

void State::score(std::span<const Item> items) {
  CHECK(network_->left.has_value(), "a model with a decoder");
  score_direction(*network_->left, items, true);
  if (network_->right) score_direction(*network_->right, items, false);
  std::vector<UtteranceId> utterances;
  const auto finite = [](float value) { return std::isfinite(value); };
  for (const Item& item : items) {
    if (std::ranges::find(utterances, item.utterance) == utterances.end()) utterances.push_back(item.utterance);
    if (!std::ranges::all_of(item.left, finite) || !std::ranges::all_of(item.right, finite)) at(item.utterance).faulty = true;
  }
  note_faults(utterances, "the decoder");
}

// sos and the tokens of hypotheses in, log-probabilities of the tokens and eos out. On a GPU the hypotheses of many
// utterances share a pass; a processor is busy with those of one, whose memory its caches may hold.
void State::score_direction(const Decoder& decoder, std::span<const Item> items, bool left) {
  constexpr std::size_t kRows = 4096;  // of a pass, unless one utterance has more
  std::map<int, std::vector<const Item*>> by_utterance;
  for (const Item& item : items) {
    if (left || !item.right.empty()) by_utterance[item.utterance].push_back(&item);
  }
  std::vector<const Item*> pass;
  std::size_t rows = 0;
  const auto run = [&] {
    if (!pass.empty()) score_pass(decoder, pass, left);
    pass.clear();
    rows = 0;
  };
  for (const auto& [id, wanted] : by_utterance) {
    std::size_t more = 0;
    for (const Item* item : wanted) more += item->tokens.size() + 1;
    if (context_.gpu == nullptr || rows + more > kRows) run();
    pass.insert(pass.end(), wanted.begin(), wanted.end());
    rows += more;
  }
  run();
}

// One pass of the decoder; items of an utterance are neighbours.
void State::score_pass(const Decoder& decoder, std::span<const Item* const> items, bool left) {
  const Config& config = network_->config;
  const int heads = config.decoder->attention_heads, head_dim = config.encoder.output_size / heads;
  std::vector<std::vector<TokenId>> inputs;
  std::vector<TokenPiece> pieces;
  std::vector<int> utterances;
  std::vector<TokenId> wanted;  // of each row
  std::int64_t longest = 0, frames = 0;
  for (const Item* item : items) {
    if (utterances.empty() || utterances.back() != item->utterance) utterances.push_back(item->utterance);
    CHECK(at(item->utterance).cache.frames() > 0, "an utterance with frames");
    frames = std::max(frames, at(item->utterance).cache.frames());
    std::vector<TokenId>& tokens = inputs.emplace_back(item->tokens.begin(), item->tokens.end());
    if (!left) std::ranges::reverse(tokens);
    wanted.insert(wanted.end(), tokens.begin(), tokens.end());
    wanted.push_back(config.eos);
    tokens.insert(tokens.begin(), config.sos);
    longest = std::max(longest, static_cast<std::int64_t>(tokens.size()));
    pieces.push_back({.slot = static_cast<int>(pieces.size()),
                      .utterance = static_cast<int>(utterances.size()) - 1,
                      .tokens = {}});
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) pieces[i].tokens = inputs[i];
  cache::KvPool cross({.slots = static_cast<int>(utterances.size()), .layers = decoder.blocks(), .heads = heads,
                       .head_dim = head_dim, .capacity = frames, .storage = DType::f32},
                      context_.gpu);
  cache::KvPool self({.slots = static_cast<int>(inputs.size()), .layers = decoder.blocks(), .heads = heads,
                      .head_dim = head_dim, .capacity = longest, .storage = DType::f32},
                     context_.gpu);
  as_graph(context_.gpu, Starts::after, [&] {
    for (std::size_t i = 0; i < utterances.size(); ++i) {
      const ConstMatrix output = at(utterances[i]).output(config.encoder.output_size);
      decoder.encode(context_, output, static_cast<int>(i), cross, decoder_buffers_);
    }
    look_up(decoder, decoder.forward(context_, pieces, self, cross, decoder_buffers_), wanted);
  }, "rescoring");
  const auto rows = static_cast<std::int64_t>(wanted.size());
  const Matrix numbers = on_host(decoder_scores_.matrix(1, kernels::CtcFrameRows::floats(rows, 1)), host_decoder_scores_);
  const float* score = kernels::CtcFrameRows(numbers.data, rows, 1).again;
  for (const Item* item : items) {
    const std::span<float> out = left ? item->left : item->right;
    const std::size_t n = item->tokens.size();
    for (std::size_t t = 0; t < n; ++t) out[left ? t : n - 1 - t] = *score++;
    out[n] = *score++;
  }
}

// The log-probability of a token after each row of `hidden`, as what ctc_frames() says of a token of the row before:
// `again` in decoder_scores_.
void State::look_up(const Decoder& decoder, Matrix hidden, std::span<const TokenId> wanted) {
  decoder_logits_.reserve(hidden.rows * network_->config.output_dim);
  const Matrix logits = decoder_logits_.matrix(hidden.rows, network_->config.output_dim);
  decoder.logits(context_, hidden, logits);
  frame_pieces_.clear();
  for (const TokenId& token : wanted) frame_pieces_.push_back({.rows = 1, .before = {&token, 1}});
  decoder_scores_.reserve(kernels::CtcFrameRows::floats(hidden.rows, 1));
  float* out = decoder_scores_.matrix(1, decoder_scores_.floats()).data;
  kernels::ctc_frames(context_, {.logits = logits,
                                 .blank = network_->config.blank,
                                 .width = 1,
                                 .pieces = frame_pieces_,
                                 .out = {out, hidden.rows, 1}});
}

}  // namespace oasr::models::conformer
