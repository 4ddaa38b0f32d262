// Recordings of CTC models together: read while others are decoded, cancelled, and short of memory.
#include <gmock/gmock.h>

#include <limits>
#include <new>

#include "engine/ctc_fixture.h"
#include "testing/paths.h"

namespace oasr::engine {
namespace {

using ::testing::HasSubstr;

using CtcBatch = CtcFixture;

// Recordings of one utterance, of several, of none; and two that fail.
struct Mixed {
  Result<std::unique_ptr<AudioSource>> open(std::size_t i) const {
    if (i == 3) return unexpected(ErrorCode::not_found, "no such file");
    auto audio = std::make_unique<TestAudio>(samples[i]);
    if (i == 5) audio->fail_at = 4097;
    return std::unique_ptr<AudioSource>(std::move(audio));
  }
  std::vector<std::string> outcomes(Transcriber& transcriber, const Callbacks& callbacks = {}) const {
    std::vector<std::string> all;
    TranscribeOptions options;
    options.vad.enabled = true;
    options.vad.min_silence_ms = 200;
    transcriber.transcribe_many(
        samples.size(), [&](std::size_t i) { return open(i); }, options, callbacks, [&](std::size_t i, Result<Transcript> result) {
          EXPECT_EQ(i, all.size());
          std::string& outcome = all.emplace_back(result ? result->text : result.error().what);
          if (!result) return;
          for (const Segment& segment : result->segments) {
            outcome += " " + std::to_string(segment.start) + " " + std::to_string(segment.avg_logprob);
          }
          for (const auto& warning : result->warnings) outcome += " " + warning.kind;
        });
    EXPECT_EQ(all.size(), samples.size());
    return all;
  }

  // Speech and pauses: `speech` of two utterances, `seconds` of it as one.
  explicit Mixed(const std::vector<float>& speech) {
    const auto first = [&](double seconds) {
      return std::vector<float>(speech.begin(), speech.begin() + static_cast<std::ptrdiff_t>(seconds * 16000));
    };
    samples = {first(3), speech, first(2), {}, joined(speech, joined(std::vector<float>(32000), speech)), first(2.5),
               {}, first(2.2), joined(first(2), joined(std::vector<float>(32000), speech)), first(3.1)};
  }
  std::vector<std::vector<float>> samples;
};

std::vector<float> speech() { return *read_all(**open_audio(testing::project_dir() / "assets/samples/jfk.flac")); }

TEST_F(CtcBatch, ReadsAheadWithTheSameResults) {
  const Mixed recordings(speech());
  const auto expected = recordings.outcomes(*transcriber());
  ASSERT_GE(std::ranges::count(expected[4], '.'), 8) << "four segments at least: " << expected[4];
  for (const int batch : {1, 2, 3, 4, 16}) {
    EXPECT_EQ(recordings.outcomes(*transcriber(batch, true)), expected) << batch;
    EXPECT_EQ(recordings.outcomes(*transcriber(batch)), expected) << batch;
  }
}

// As inputs need that a program writes when it has read the text of the one before.
TEST_F(CtcBatch, OfOneEachIsOverBeforeTheNextIsOpened) {
  for (const bool reads_ahead : {false, true}) {
    std::size_t over = 0;
    transcriber(1, reads_ahead)->transcribe_many(
        4,
        [&](std::size_t i) -> Result<std::unique_ptr<AudioSource>> {
          EXPECT_EQ(over, i);
          return std::unique_ptr<AudioSource>(std::make_unique<TestAudio>(babble(1)));
        },
        {}, {}, [&](std::size_t, const Result<Transcript>&) { ++over; });
    EXPECT_EQ(over, 4u);
  }
}

TEST_F(CtcBatch, ACancelledCallGivesEveryRecordingAResult) {
  const Mixed recordings(speech());
  const auto expected = recordings.outcomes(*transcriber());
  for (const bool reads_ahead : {false, true}) {
    for (const int asked : {0, 1, 3, 5, 8}) {
      int left = asked;
      Callbacks callbacks;
      callbacks.cancelled = [&] { return left-- <= 0; };
      const auto cancelled = recordings.outcomes(*transcriber(2, reads_ahead), callbacks);
      EXPECT_THAT(cancelled.back(), HasSubstr("cancelled"));
      for (std::size_t i = 0; i < cancelled.size(); ++i) {
        EXPECT_TRUE(cancelled[i] == cancelled.back() || cancelled[i] == expected[i]) << asked << ": " << cancelled[i];
      }
    }
  }
}

// Finds no memory for a pass of many rows, as a GPU that others use.
struct LittleMemory : RunObserver {
  void not_finite(std::string_view, std::int64_t) override {}
  bool wants_times() const override { return true; }
  void layer_time(std::string_view layer, const LayerCall& call) override {
    if (call.rows <= rows || !layer.starts_with("encoder.encoders.1")) return;
    ++refused;
    if (of_gpu) throw GpuOutOfMemory("out of GPU memory: 7 MiB asked for");
    throw std::bad_alloc();
  }
  std::int64_t rows = std::numeric_limits<std::int64_t>::max();
  bool of_gpu = true;
  int refused = 0;
};

TEST_F(CtcBatch, APassThatFindsNoMemoryIsCutAndGivesTheSame) {
  LittleMemory memory;
  context.observer = &memory;
  const Mixed recordings(speech());
  const auto expected = recordings.outcomes(*transcriber());
  constexpr int kLongest = 11 * 100 / 4;  // frames of an utterance, at most
  for (const bool reads_ahead : {false, true}) {
    for (const bool of_gpu : {false, true}) {
      memory.rows = kLongest;
      memory.of_gpu = of_gpu;
      memory.refused = 0;
      const auto many = transcriber(16, reads_ahead);
      EXPECT_EQ(recordings.outcomes(*many), expected);
      EXPECT_GT(memory.refused, 0);
      EXPECT_LE(memory.refused, 3);  // what is known of one pass holds for the next
      memory.rows = std::numeric_limits<std::int64_t>::max();
      EXPECT_EQ(recordings.outcomes(*many), expected);
    }
  }
}

TEST_F(CtcBatch, AnUtteranceThatFindsNoMemoryEndsItsRecordingOnly) {
  LittleMemory memory;
  context.observer = &memory;
  const std::vector<double> seconds = {1, 1.3, 9, 0.8, 1.1};
  const auto texts = [&](Transcriber& transcribes) {
    std::vector<std::string> all;
    transcribes.transcribe_many(
        seconds.size(),
        [&](std::size_t i) -> Result<std::unique_ptr<AudioSource>> {
          return std::unique_ptr<AudioSource>(
              std::make_unique<TestAudio>(babble(seconds[i], 200 + 40.0 * static_cast<double>(i))));
        },
        {}, {}, [&](std::size_t, Result<Transcript> t) { all.push_back(t ? t->text : t.error().message()); });
    return all;
  };
  auto expected = texts(*transcriber());
  memory.rows = 120;
  for (const int batch : {1, 2, 8}) {
    const auto got = texts(*transcriber(batch));
    EXPECT_THAT(got[2], HasSubstr("7 MiB asked for"));
    EXPECT_THAT(got[2], HasSubstr("--device cpu"));
    expected[2] = got[2];
    EXPECT_EQ(got, expected) << batch;
  }
}

}  // namespace
}  // namespace oasr::engine
