// The search of ctc_prefix_beam() for one utterance, by a team of threads that share a board. A frame is three steps:
// all candidates are valued, the best are chosen, and hypotheses are made of them. Within a step every item writes
// what is its own and reads nothing that another one writes.
//
// decode/ctc_prefix_beam.cc says why a candidate is worth what it is; here are only its arithmetic and its order.
#pragma once

#include <cstdint>

#include "decode/log_math.h"
#include "kernels/ctc_beam/op.h"

#ifdef __CUDACC__
#define OASR_BY_A_TEAM __device__
#else
#define OASR_BY_A_TEAM
#endif

namespace oasr::kernels::ctc_beam {

using NodeKey = unsigned long long;
inline constexpr std::int32_t kNone = -1;
inline constexpr std::int32_t kRoot = 0;  // the empty prefix; another one is its place in the table, plus one

// Nothing that lies on the board is initialised: on a GPU it is shared memory.
struct Hypothesis {
  double blank, non_blank, score, best_blank, best_non_blank;
  std::int32_t prefix, above;  // above: the prefix without the last token; of the root kNone
  TokenId last;                // -1: of the root
  std::int32_t length;
  std::int32_t blank_times, non_blank_times;  // emissions: beam · frame + place in the beam
  std::int32_t before;                        // of the emission non_blank_times, the one before,
  float height;                               // and its log-probability
  std::int32_t fresh;  // if the frame before made it, the rank of its token there, else kNone

  OASR_BY_A_TEAM double best() const { return best_blank > best_non_blank ? best_blank : best_non_blank; }
  OASR_BY_A_TEAM std::int32_t times() const { return best_blank > best_non_blank ? blank_times : non_blank_times; }
  OASR_BY_A_TEAM double lead(TokenId token) const { return last == token ? blank : score; }
};

struct Frame {
  TokenId tokens[kMostCtcBeam];
  float logits[kMostCtcBeam];
  float again[kMostCtcBeam];
  std::int32_t count;  // of the tokens that are looked at

  OASR_BY_A_TEAM std::int32_t rank_of(TokenId token) const {
    for (std::int32_t i = 0; i < count; ++i) {
      if (tokens[i] == token) return i;
    }
    return kNone;
  }
};

// A hypothesis whose prefix stays.
struct Stay {
  double blank, non_blank, score;
  std::int32_t blank_rank, rank, parent;
};

struct Board {
  Hypothesis beam[2][kMostCtcBeam];
  Frame frames[2];
  Stay stays[kMostCtcBeam];
  // Candidates: the hypotheses that stay, then their extensions [rank, hypothesis].
  double totals[kMostCtcBeam * (1 + kMostCtcBeam)];
  std::int32_t orders[kMostCtcBeam * (1 + kMostCtcBeam)];
  std::int32_t kept[kMostCtcBeam];  // candidates, best first; kNone where there is none
  std::int32_t size;                // hypotheses
};

// Memory of one utterance.
struct Utterance {
  const decode::ScoredToken* likeliest;  // [frames, width]
  const float* again;
  const float* blanks;
  std::int32_t frames, width, first_beam, second_beam;
  TokenId blank;
  double blank_skip;
  NodeKey* nodes;
  float* heights;
  std::int32_t* befores;
  CtcBeamResult* results;
  CtcBeamToken* tokens;

  OASR_BY_A_TEAM std::uint32_t capacity() const { return 2u * static_cast<std::uint32_t>(second_beam * frames); }
};

OASR_BY_A_TEAM inline Utterance utterance_of(const CtcBeamArgs& args, const CtcBeamUtterance& rows, std::int64_t index) {
  const std::int64_t first = rows.first_row, beam = args.second_beam;
  return {.likeliest = args.frames.likeliest + first * args.width,
          .again = args.frames.again + first * args.width,
          .blanks = args.frames.blanks + first,
          .frames = rows.frames,
          .width = args.width,
          .first_beam = args.first_beam,
          .second_beam = args.second_beam,
          .blank = args.blank,
          .blank_skip = args.blank_skip,
          .nodes = args.memory.nodes + 2 * beam * first,
          .heights = args.memory.heights + beam * first,
          .befores = args.memory.befores + beam * first,
          .results = args.memory.results + beam * index,
          .tokens = args.memory.tokens + beam * first};
}

// Team: each(n, f) calls f for 0 … n - 1, both(n, f, m, g) those of two functions; when they return all is done.
// claim(at, key): what was at `at`; if that was 0 it is the key now.
template <class Team>
class Search {
 public:
  OASR_BY_A_TEAM Search(const Team& team, const Utterance& u, Board& board) : team_(team), u_(u), board_(board) {}

  OASR_BY_A_TEAM void run() {
    team_.both(1, [&](int) { start(); }, u_.first_beam, [&](int i) { load(0, i); });
    for (std::int32_t t = 0; t < u_.frames; ++t) step(t);
    team_.each(u_.second_beam, [&](int i) { finish(i); });
  }

 private:
  OASR_BY_A_TEAM Hypothesis& old(std::int32_t i) { return board_.beam[current_][i]; }
  OASR_BY_A_TEAM std::int32_t event(std::int32_t rank, std::int32_t hypothesis, bool second) const {
    return (rank * u_.second_beam + hypothesis) * 2 + static_cast<std::int32_t>(second);
  }

  OASR_BY_A_TEAM void start() {
    board_.beam[0][0] = {.blank = 0, .non_blank = decode::kLogZero, .score = 0, .best_blank = 0, .best_non_blank = 0,
                         .prefix = kRoot, .above = kNone, .last = -1, .length = 0, .blank_times = kNone,
                         .non_blank_times = kNone, .before = kNone, .height = 0, .fresh = kNone};
    board_.size = 1;
  }

  // Token i of frame t; that of rank 0 also tells how many are looked at.
  OASR_BY_A_TEAM void load(std::int32_t t, int i) {
    Frame& frame = board_.frames[t % 2];
    const std::int64_t at = std::int64_t{t} * u_.width + i;
    TokenId token = u_.likeliest[at].token;
    float logit = u_.likeliest[at].logit;
    frame.again[i] = u_.again[at];
    if (i == 0) {
      const float blank = u_.blanks[t];
      const bool skip = decode::exp_of_negative(double{blank}) > u_.blank_skip;
      frame.count = skip ? 1 : u_.first_beam;
      if (skip) token = u_.blank;
      if (skip) logit = blank;
    }
    frame.tokens[i] = token;
    frame.logits[i] = logit;
  }

  OASR_BY_A_TEAM void step(std::int32_t t) {
    const Frame& frame = board_.frames[t % 2];
    const std::int32_t size = board_.size, candidates = size * (1 + frame.count);
    const bool more = t + 1 < u_.frames;
    team_.both(
        candidates,
        [&](int i) { i < size ? value_stay(frame, i) : value_extension(frame, i, (i - size) / size, (i - size) % size); },
        kMostCtcBeam, [&](int i) {
          board_.kept[i] = kNone;
          if (more && i < u_.first_beam) load(t + 1, i);
        });
    team_.each(candidates, [&](int i) { choose(i, candidates); });
    const bool any = board_.kept[0] != kNone;  // else no token is possible: the frame says nothing
    team_.each(u_.second_beam, [&](int i) { keep(frame, t, i, size); });
    if (any) current_ = 1 - current_;
  }

  OASR_BY_A_TEAM void value_stay(const Frame& frame, std::int32_t i) {
    Hypothesis& hypothesis = old(i);
    if (hypothesis.fresh != kNone) {  // nobody else reads or writes these two now
      const float again = frame.again[hypothesis.fresh];
      if (again > hypothesis.height) u_.heights[hypothesis.non_blank_times] = hypothesis.height = again;
      hypothesis.fresh = kNone;
    }
    Stay stay{.blank = decode::kLogZero, .non_blank = decode::kLogZero, .score = 0, .blank_rank = frame.rank_of(u_.blank),
              .rank = hypothesis.last >= 0 ? frame.rank_of(hypothesis.last) : kNone, .parent = kNone};
    std::int32_t order = event(frame.count, 0, false);
    if (stay.blank_rank != kNone) {
      stay.blank = hypothesis.score + double{frame.logits[stay.blank_rank]};
      order = event(stay.blank_rank, i, false);
    }
    if (stay.rank != kNone) {
      const double logit = frame.logits[stay.rank];
      stay.non_blank = hypothesis.non_blank + logit;
      order = least(order, event(stay.rank, i, false));
      stay.parent = whose_prefix(hypothesis.above);
      if (stay.parent != kNone) {
        const Hypothesis& parent = old(stay.parent);
        stay.non_blank = decode::log_add(stay.non_blank, parent.lead(hypothesis.last) + logit);
        order = least(order, event(stay.rank, stay.parent, parent.last == hypothesis.last));
      }
    }
    stay.score = decode::log_add(stay.blank, stay.non_blank);
    board_.stays[i] = stay;
    board_.totals[i] = stay.score;
    board_.orders[i] = order;
  }

  static OASR_BY_A_TEAM std::int32_t least(std::int32_t a, std::int32_t b) { return a < b ? a : b; }

  OASR_BY_A_TEAM std::int32_t whose_prefix(std::int32_t prefix) {
    for (std::int32_t i = 0; i < board_.size; ++i) {
      if (old(i).prefix == prefix) return i;
    }
    return kNone;
  }

  // A prefix that is a hypothesis already has the extension as a part of its staying.
  OASR_BY_A_TEAM bool is_taken(std::int32_t prefix, TokenId token) {
    for (std::int32_t i = 0; i < board_.size; ++i) {
      if (old(i).above == prefix && old(i).last == token) return true;
    }
    return false;
  }

  OASR_BY_A_TEAM void value_extension(const Frame& frame, std::int32_t at, std::int32_t rank, std::int32_t i) {
    const Hypothesis& parent = old(i);
    const TokenId token = frame.tokens[rank];
    const bool possible = token != u_.blank && !is_taken(parent.prefix, token);
    board_.totals[at] = possible ? parent.lead(token) + double{frame.logits[rank]} : decode::kLogZero;
    board_.orders[at] = event(rank, i, parent.last == token);
  }

  // The place of a candidate is the number of those before it: no two are equal.
  OASR_BY_A_TEAM void choose(std::int32_t i, std::int32_t candidates) {
    const double total = board_.totals[i];
    if (!(total > decode::kLogZero)) return;
    const std::int32_t order = board_.orders[i];
    std::int32_t place = 0;
    for (std::int32_t other = 0; other < candidates && place < u_.second_beam; ++other) {
      const double its = board_.totals[other];
      if (its > total || (its == total && board_.orders[other] < order)) ++place;
    }
    if (place < u_.second_beam) board_.kept[place] = i;
  }

  OASR_BY_A_TEAM void keep(const Frame& frame, std::int32_t t, std::int32_t place, std::int32_t size) {
    const std::int32_t candidate = board_.kept[place];
    if (candidate == kNone) return;
    const std::int32_t emission = t * u_.second_beam + place;
    board_.beam[1 - current_][place] = candidate < size
                                           ? stayed(frame, candidate, emission)
                                           : extended(frame, (candidate - size) / size, (candidate - size) % size, emission);
    if (place + 1 == u_.second_beam || board_.kept[place + 1] == kNone) board_.size = place + 1;
  }

  OASR_BY_A_TEAM void emit(Hypothesis& made, std::int32_t emission, std::int32_t before, float height, std::int32_t rank) {
    made.non_blank_times = emission;
    made.before = u_.befores[emission] = before;
    made.height = u_.heights[emission] = height;
    made.fresh = rank;
  }

  OASR_BY_A_TEAM Hypothesis stayed(const Frame& frame, std::int32_t i, std::int32_t emission) {
    const Hypothesis& was = old(i);
    const Stay& stay = board_.stays[i];
    Hypothesis made = was;
    made.blank = stay.blank;
    made.non_blank = stay.non_blank;
    made.score = stay.score;
    made.best_blank = made.best_non_blank = decode::kLogZero;
    made.blank_times = made.non_blank_times = kNone;
    if (stay.blank_rank != kNone) {
      made.best_blank = was.best() + double{frame.logits[stay.blank_rank]};
      made.blank_times = was.times();
    }
    if (stay.rank == kNone) return made;
    const float logit = frame.logits[stay.rank];
    const double own = was.best_non_blank + double{logit};
    double others = decode::kLogZero;
    std::int32_t before = kNone;
    if (stay.parent != kNone) {
      const Hypothesis& parent = old(stay.parent);
      const bool same = parent.last == was.last;
      others = (same ? parent.best_blank : parent.best()) + double{logit};
      before = same ? parent.blank_times : parent.times();
    }
    made.best_non_blank = own < others ? others : own;
    const bool parent_first = stay.parent != kNone && stay.parent < i;
    if (others > decode::kLogZero && (parent_first || others > own)) {
      emit(made, emission, before, logit, stay.rank);
    } else if (own > decode::kLogZero) {
      emit(made, emission, was.before, was.height < logit ? logit : was.height, stay.rank);
    }
    return made;
  }

  OASR_BY_A_TEAM Hypothesis extended(const Frame& frame, std::int32_t rank, std::int32_t i, std::int32_t emission) {
    const Hypothesis& parent = old(i);
    const TokenId token = frame.tokens[rank];
    const float logit = frame.logits[rank];
    const bool same = parent.last == token;
    const double score = parent.lead(token) + double{logit};
    Hypothesis made{.blank = decode::kLogZero, .non_blank = score, .score = score, .best_blank = decode::kLogZero,
                    .best_non_blank = (same ? parent.best_blank : parent.best()) + double{logit},
                    .prefix = child_of(parent.prefix, token), .above = parent.prefix, .last = token,
                    .length = parent.length + 1, .blank_times = kNone, .non_blank_times = kNone, .before = kNone,
                    .height = 0, .fresh = kNone};
    if (made.best_non_blank > decode::kLogZero) {
      emit(made, emission, same ? parent.blank_times : parent.times(), logit, rank);
    }
    return made;
  }

  // The prefix and a token, one node however often it comes about. At most half of the table is ever used.
  OASR_BY_A_TEAM std::int32_t child_of(std::int32_t prefix, TokenId token) {
    const NodeKey key = ((NodeKey{static_cast<std::uint32_t>(prefix)} << 32) | static_cast<std::uint32_t>(token)) + 1;
    NodeKey hash = key * 0x9E37'79B9'7F4A'7C15ull;
    hash = (hash ^ (hash >> 32)) * 0xD6E8'FEB8'6659'FD93ull;
    const std::uint32_t capacity = u_.capacity();
    auto at = static_cast<std::uint32_t>(((hash >> 32) * capacity) >> 32);
    while (true) {
      const NodeKey found = team_.claim(u_.nodes + at, key);
      if (found == 0 || found == key) return static_cast<std::int32_t>(at) + 1;
      at = at + 1 == capacity ? 0 : at + 1;
    }
  }

  // All of the result's memory is written, since all of it is copied to the host: zeros after the last token.
  OASR_BY_A_TEAM void finish(std::int32_t i) {
    const bool found = i < board_.size;
    CtcBeamToken* tokens = u_.tokens + std::int64_t{i} * u_.frames;
    for (std::int32_t k = found ? old(i).length : 0; k < u_.frames; ++k) tokens[k] = {};
    if (!found) {
      u_.results[i] = {.score = decode::kLogZero, .length = -1, .reserved = 0};
      return;
    }
    const Hypothesis& hypothesis = old(i);
    u_.results[i] = {.score = hypothesis.score, .length = hypothesis.length, .reserved = 0};
    std::int32_t prefix = hypothesis.prefix, emission = hypothesis.times();
    for (std::int32_t k = hypothesis.length - 1; k >= 0; --k) {
      const NodeKey key = u_.nodes[prefix - 1] - 1;
      const bool emitted = emission != kNone;
      tokens[k] = {.token = static_cast<TokenId>(key & 0xffff'ffffu),
                   .frame = emitted ? emission / u_.second_beam : kNone,
                   .log_probability = emitted ? u_.heights[emission] : 0.0f};
      prefix = static_cast<std::int32_t>(key >> 32);
      if (emitted) emission = u_.befores[emission];
    }
  }

  const Team& team_;
  const Utterance& u_;
  Board& board_;
  int current_ = 0;  // which of the two beams is the old one
};

}  // namespace oasr::kernels::ctc_beam
