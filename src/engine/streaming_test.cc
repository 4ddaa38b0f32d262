// Many streams in one StreamingSessions give what each gives alone. The model is small and random.
#include "engine/streaming.h"

#include <gtest/gtest.h>

#include <cmath>

#include "load/load.h"
#include "models/conformer/test_support.h"

namespace oasr::engine {
namespace {

constexpr int kSessions = 50;

// Everything that an event says.
struct Told {
  explicit Told(const StreamEvent& event)
      : kind(event.kind), utterance(event.utterance), stable(event.stable), time(event.time),
        start(event.segment.start), end(event.segment.end), logprob(event.segment.avg_logprob), text(event.text),
        endpoint(event.endpoint), tokens(event.segment.tokens.begin(), event.segment.tokens.end()) {
    for (const Word& word : event.segment.words) {
      words += word.text;
      numbers.insert(numbers.end(), {word.start, word.end, word.probability});
    }
  }
  bool operator==(const Told&) const = default;

  StreamEvent::Kind kind;
  int utterance;
  std::size_t stable;
  double time, start, end, logprob;
  std::string text, endpoint;
  std::vector<std::int32_t> tokens;
  std::string words;
  std::vector<double> numbers;
};

// Numbers that are the same everywhere.
class Random {
 public:
  explicit Random(std::uint32_t seed) : state_(seed * 2654435761u + 1) {}
  std::uint32_t below(std::uint32_t limit) {
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<std::uint32_t>((std::uint64_t{state_ >> 8} * limit) >> 24);
  }

 private:
  std::uint32_t state_;
};

// Half a second to three of a few tones and noise, which change every 80 ms or so; some end in silence.
std::vector<float> recording(int number) {
  Random random(static_cast<std::uint32_t>(number));
  std::vector<float> samples(8000 + random.below(40000));
  std::size_t at = 0;
  while (at < samples.size()) {
    const double step = 0.02 + 1e-4 * random.below(9000), level = 0.05 + 1e-3 * random.below(400);
    const std::size_t end = std::min(samples.size(), at + 600 + random.below(1500));
    const bool silent = number % 3 == 0 && at > samples.size() / 2;
    for (; at < end; ++at) {
      const double noise = (random.below(2000) / 1000.0 - 1) * 0.02;
      samples[at] = silent ? 0.0f : static_cast<float>(level * std::sin(step * static_cast<double>(at)) + noise);
    }
  }
  return samples;
}

struct StreamingSessionsTest : ::testing::Test {
  void SetUp() override {
    auto loaded = load::load_checkpoint(models::conformer::random_checkpoint(models::conformer::small_train_yaml()), {},
                                        context);
    ASSERT_TRUE(loaded) << loaded.error().message();
    model = std::dynamic_pointer_cast<const models::CtcModel>(loaded->model);
    options.ctc.chunk_size = 4;
    options.word_timestamps = true;
    for (int i = 0; i < kSessions; ++i) recordings.push_back(recording(i));
  }
  std::unique_ptr<StreamingSessions> sessions(const StreamingOptions& streaming) {
    return *StreamingSessions::create(model, options, streaming, context);
  }
  static void take(StreamingSessions& sessions, int id, std::vector<Told>& told) {
    for (const StreamEvent& event : sessions.take_events(id)) told.emplace_back(event);
  }
  // All samples at once, in sessions of its own.
  std::vector<Told> alone(int number, const StreamingOptions& streaming) {
    const auto own = sessions(streaming);
    std::vector<Told> told;
    const int id = *own->open(16000);
    EXPECT_TRUE(own->accept(id, recordings[static_cast<std::size_t>(number)]));
    EXPECT_TRUE(own->finish(id));
    while (own->ready()) own->step();
    take(*own, id, told);
    return told;
  }
  // All together: each begins at a turn of its own and gives pieces of sizes of its own; one that is over is
  // closed, and its place is taken by one that begins later.
  std::vector<std::vector<Told>> together(const StreamingOptions& streaming) {
    const auto all = sessions(streaming);
    std::vector<std::vector<Told>> told(kSessions);
    std::vector<int> ids(kSessions, -1);
    std::vector<std::size_t> given(kSessions, 0);
    int over = 0;
    for (int turn = 0; over < kSessions && turn < 100'000; ++turn) {
      for (int i = 0; i < kSessions; ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (turn < i * 3 || ids[at] == -2) continue;
        if (turn == i * 3) ids[at] = *all->open(16000);
        const std::span<const float> rest = std::span(recordings[at]).subspan(given[at]);
        if (!rest.empty()) {
          Random random(static_cast<std::uint32_t>(1000 * i + turn));
          const std::size_t piece = std::min<std::size_t>(rest.size(), random.below(i % 4 == 0 ? 100 : 4000));
          EXPECT_TRUE(all->accept(ids[at], rest.first(piece)));
          given[at] += piece;
          if (given[at] == recordings[at].size()) {
            EXPECT_TRUE(all->finish(ids[at]));
          }
        }
      }
      for (int steps = turn % 3; steps > 0 && all->ready(); --steps) all->step();  // not always, not always enough
      for (int i = 0; i < kSessions; ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (ids[at] < 0) continue;
        take(*all, ids[at], told[at]);
        if (told[at].empty() || told[at].back().kind != StreamEvent::Kind::done) continue;
        all->close(ids[at]);
        ids[at] = -2;
        ++over;
      }
    }
    return told;
  }

  ThreadPool pool{2};
  ExecContext context{.pool = &pool, .isa = detected_isa()};
  std::shared_ptr<const models::CtcModel> model;
  TranscribeOptions options;
  std::vector<std::vector<float>> recordings;
};

TEST_F(StreamingSessionsTest, FiftyTogetherGiveTheEventsOfEachAlone) {
  const StreamingOptions streaming{.endpoints = {{false, 0.6, 0}, {true, 0.3, 0}, {false, 0, 1.2}}};
  const auto told = together(streaming);
  std::size_t partials = 0, finals = 0, endpoints = 0;
  for (int i = 0; i < kSessions; ++i) {
    const auto& got = told[static_cast<std::size_t>(i)];
    const std::vector<Told> want = alone(i, streaming);
    EXPECT_TRUE(got == want) << "session " << i << ": " << got.size() << " events, alone " << want.size();
    for (const Told& event : want) {
      partials += event.kind == StreamEvent::Kind::partial;
      finals += event.kind == StreamEvent::Kind::final;
      endpoints += !event.endpoint.empty();
    }
  }
  // Something was compared: texts that grow, and utterances that rules end.
  EXPECT_GT(partials, 2u * kSessions);
  EXPECT_GT(finals, static_cast<std::size_t>(kSessions));
  EXPECT_GT(endpoints, static_cast<std::size_t>(kSessions) / 2);
}

TEST_F(StreamingSessionsTest, NoSampleIsLost) {
  const auto told = together({.endpoints = {}});
  for (int i = 0; i < kSessions; ++i) {
    const auto samples = static_cast<std::int64_t>(recordings[static_cast<std::size_t>(i)].size());
    const std::int64_t features = 1 + (samples - 400) / 160;  // 25 ms every 10 ms at 16 kHz
    const std::int64_t frames = ((features - 1) / 2 - 1) / 2;  // two convolutions of 3 with stride 2
    const auto& got = told[static_cast<std::size_t>(i)];
    ASSERT_GE(got.size(), 2u) << i;
    EXPECT_EQ(got.back().kind, StreamEvent::Kind::done);
    EXPECT_EQ(got[got.size() - 2].kind, StreamEvent::Kind::final);
    EXPECT_DOUBLE_EQ(got[got.size() - 2].time, static_cast<double>(frames) * 0.04) << i;
  }
}

}  // namespace
}  // namespace oasr::engine
