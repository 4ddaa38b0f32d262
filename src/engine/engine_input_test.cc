// What the engine makes of odd, many and unfinished recordings, over a scripted model.
#include "engine/aed_transcriber.h"
#include "engine/engine_fixture.h"
#include "testing/paths.h"

namespace oasr::engine {
namespace {

using EngineInput = EngineFixture;

TEST_F(EngineInput, SkipsSilenceNoiseAndTonesAtNoCost) {
  use(say({at(0), 24, at(3)}));
  std::vector<std::vector<float>> inputs;
  for (const double seconds : {0.5, 5.0, 30.0, 65.0}) {
    const auto size = static_cast<std::size_t>(seconds * 16000);
    inputs.emplace_back(size, 0.0f);
    inputs.emplace_back(size, 0.25f);  // a constant
    for (const double level : {0.1, 0.0005}) {
      std::vector<float> noise(size), tone(size), square(size);
      for (std::size_t i = 0; i < size; ++i) {
        // Gaussian by Box and Muller.
        const auto step = static_cast<std::uint32_t>(i);
        const double u = decode::uniform({1, 0, 0, 0, step}),
                     v = decode::uniform({1, 0, 0, 1, step});
        noise[i] = static_cast<float>(level * std::sqrt(-2 * std::log(1 - u)) *
                                      std::cos(2 * std::numbers::pi * v));
        tone[i] = static_cast<float>(
            level * std::sin(2 * std::numbers::pi * 440 * static_cast<double>(i) / 16000));
        square[i] = static_cast<float>(tone[i] > 0 ? level : -level);
      }
      inputs.insert(inputs.end(), {noise, tone, square});
    }
  }
  for (const auto& input : inputs) {
    const auto transcript = run(input);
    ASSERT_TRUE(transcript);
    EXPECT_EQ(transcript->text, "") << input.size();
    EXPECT_TRUE(has_warning(*transcript, "no_speech"));
    EXPECT_TRUE(has_warning(*transcript, "empty_result"));
  }
  EXPECT_EQ(model->encoded, 0);
}

// Speech under a hum, or with a constant offset, moves the level by less than 1.5 dB: it is heard.
TEST_F(EngineInput, DecodesSpeechUnderASteadySound) {
  use(say({at(0), 0, at(3)}));
  const auto speech = *read_all(**open_audio(testing::project_dir() / "assets/samples/jfk.flac"));
  auto offset = speech, hum = speech;
  for (std::size_t i = 0; i < speech.size(); ++i) {
    offset[i] = 0.02f * speech[i] + 0.05f;
    hum[i] = 0.05f * speech[i] + 0.05f * std::sin(2 * std::numbers::pi_v<float> * 50 *
                                                  static_cast<float>(i) / 16000);
  }
  for (const auto& samples : {offset, hum}) {
    const auto transcript = run(samples, english());
    ASSERT_TRUE(transcript);
    EXPECT_EQ(transcript->text, " a");
  }
}

TEST_F(EngineInput, SaysThatSamplesAreFarBeyondFullScale) {
  use(say({at(0), 0, at(3)}));
  auto samples = babble(5);
  for (float& sample : samples) sample *= 1000;
  const auto loud = run(samples, english());
  ASSERT_TRUE(loud);
  EXPECT_TRUE(std::ranges::any_of(loud->warnings, [](const Warning& w) {
    return w.kind == "audio" && w.message.find("times full scale") != std::string::npos;
  }));
  for (float& sample : samples) sample *= 1e35f;
  const auto absurd = run(samples, english());
  ASSERT_FALSE(absurd);
  EXPECT_EQ(absurd.error().code, ErrorCode::bad_audio);
}

TEST_F(EngineInput, RefusesAModelWithOtherWindows) {
  use(say({at(0), 0, at(3)}));
  model->frames = 2000;
  const auto result = run(babble(3));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::unsupported);
  EXPECT_EQ(result.error().what, "the model's windows have 2000 frames of 10 ms; only windows of 3000 are decoded");
  EXPECT_NE(result.error().remedy, "");
}

TEST_F(EngineInput, DecodesQuietWindowsWhenTheGateIsOff) {
  use(say({at(0), 24, at(3)}));
  auto options = english();
  options.silence_dbfs.reset();
  const auto transcript = run(std::vector<float>(80000, 0.0f), options);
  ASSERT_TRUE(transcript);
  EXPECT_EQ(transcript->text, " y");
}

TEST_F(EngineInput, EndsARecordingWithinAWindow) {
  use([](const FakeStep& step, std::span<float> logits) {
    // Frames after the end are 0.0 exactly; those of the recording are not.
    EXPECT_NE(step.mel[20 * 3000 + 299], 0.0f);
    for (int m = 0; m < 80; ++m)
      EXPECT_EQ(step.mel[static_cast<std::size_t>(m * 3000 + 300)], 0.0f);
    say({at(0), 0, at(2)})(step, logits);
  });
  ASSERT_TRUE(run(babble(3)));
}

TEST_F(EngineInput, LongFilesAndShortOnesGiveTheSameWindows) {
  // More than two minutes are read twice; clips of the same audio within that are kept.
  std::vector<std::vector<float>> mels;
  use([&](const FakeStep& step, std::span<float> logits) {
    if (step.row.back() == kSot) mels.push_back(step.mel);
    say({at(0), 0, at(29)})(step, logits);
  });
  auto samples = babble(150);
  samples[100] = 0.9f;  // the maximum is early
  TestAudio file(samples), pipe(samples, true);
  auto options = english();
  options.condition_on_previous_text = false;
  const auto twice = transcriber->transcribe(file, options);
  ASSERT_TRUE(twice);
  EXPECT_EQ(file.rewinds, 1);
  EXPECT_FALSE(has_warning(*twice, "running_maximum"));
  auto expected = std::exchange(mels, {});
  const auto once = transcriber->transcribe(pipe, options);
  ASSERT_TRUE(once);
  EXPECT_TRUE(has_warning(*once, "running_maximum"));
  EXPECT_EQ(mels, expected);
  EXPECT_EQ(once->duration, 150.0);
}

TEST_F(EngineInput, AShortPipeEqualsAFile) {
  use(say({at(0), 0, at(3)}));
  TestAudio pipe(babble(20), true);
  const auto transcript = transcriber->transcribe(pipe, english());
  ASSERT_TRUE(transcript);
  EXPECT_TRUE(transcript->warnings.empty());
}

TEST_F(EngineInput, TinyRecordingsAreNoError) {
  use(say({at(0), 0, at(3)}));
  for (const int size : {0, 1, 159, 399, 400, 1599}) {
    for (const bool single : {false, true}) {
      auto samples = babble(1);
      samples.resize(static_cast<std::size_t>(size));
      auto options = english();
      options.single_window = single;
      const auto transcript = run(samples, options);
      ASSERT_TRUE(transcript) << size << ' ' << transcript.error().message();
      EXPECT_EQ(transcript->duration, size / 16000.0);
      if (size < 160) {
        EXPECT_TRUE(has_warning(*transcript, "empty_result"));
      }
    }
  }
}

TEST_F(EngineInput, PassesErrorsAndTruncationOn) {
  use(say({at(0), 0, at(3)}));
  TestAudio bad(babble(5));
  bad.fail_at = 8000;
  const auto failed = transcriber->transcribe(bad, english());
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::bad_audio);
  TestAudio cut(babble(5));
  cut.truncation = "the file ends inside a frame";
  const auto transcript = transcriber->transcribe(cut, english());
  ASSERT_TRUE(transcript);
  EXPECT_TRUE(transcript->truncated);
  EXPECT_TRUE(has_warning(*transcript, "truncated_audio"));
}

TEST_F(EngineInput, CancelsBetweenSteps) {
  use(say({at(0), 0, 1, 2, 3, 4, 5, 6, at(3)}));
  Callbacks callbacks;
  callbacks.cancelled = [&] { return model->steps >= 5; };
  const auto transcript = run(babble(5), english(), callbacks);
  ASSERT_FALSE(transcript);
  EXPECT_EQ(transcript.error().code, ErrorCode::cancelled);
  EXPECT_EQ(model->steps, 5);
  // The transcriber goes on working.
  EXPECT_TRUE(run(babble(5)));
}

TEST_F(EngineInput, CallsBackSegmentsAsTheyAreDecodedAndProgress) {
  use(say({at(0), 0, at(10)}));
  std::vector<double> starts, done;
  Callbacks callbacks;
  callbacks.segment = [&](const Segment& segment) {
    EXPECT_EQ(model->encoded, static_cast<int>(starts.size()) + 1);
    starts.push_back(segment.start);
  };
  callbacks.progress = [&](double seconds, double total) {
    EXPECT_EQ(total, 61.0);
    done.push_back(seconds);
  };
  ASSERT_TRUE(run(babble(61), english(), callbacks));
  EXPECT_EQ(starts, (std::vector<double>{0, 30, 60}));
  EXPECT_EQ(done, (std::vector<double>{30, 60, 61}));
}

TEST_F(EngineInput, ManyTogetherEqualEachAloneBitForBit) {
  // Text, lengths and fallback depend on the audio through the pseudo-random logits.
  use([](const FakeStep& step, std::span<float> logits) {
    for (float& x : logits) x *= 6;
    if (step.said.size() > 3) logits[kEot] += 0.5f * static_cast<float>(step.said.size());
  });
  auto options = english();
  options.seed = 5;
  options.best_of = 2;
  options.silence_dbfs.reset();  // falls back, although nobody speaks
  std::vector<std::vector<float>> inputs;
  for (int i = 0; i < 7; ++i) inputs.push_back(babble(3 + 13.0 * i, 200 + 31.0 * i));
  std::vector<Transcript> alone;
  for (const auto& input : inputs) alone.push_back(*run(input, options));
  struct Run {
    int batch, threads;
    bool reads_ahead = false;
  };
  for (const Run& how : {Run{2, 1}, {3, 1}, {8, 1}, {8, 4}, {1, 2, true}, {2, 2, true}, {3, 4, true}, {8, 4, true}}) {
    ThreadPool others(how.threads);
    auto many = *AedTranscriber::create(model, {.pool = &others, .isa = Isa::scalar}, how.batch, how.reads_ahead);
    std::size_t expected_index = 0;
    many->transcribe_many(
        inputs.size(),
        [&](std::size_t i) -> Result<std::unique_ptr<AudioSource>> {
          return std::unique_ptr<AudioSource>(std::make_unique<TestAudio>(inputs[i]));
        },
        options, {},
        [&](std::size_t index, Result<Transcript> transcript) {
          EXPECT_EQ(index, expected_index++);
          ASSERT_TRUE(transcript);
          ASSERT_EQ(transcript->segments.size(), alone[index].segments.size());
          for (std::size_t k = 0; k < alone[index].segments.size(); ++k) {
            const Segment &a = transcript->segments[k], &b = alone[index].segments[k];
            EXPECT_EQ(a.tokens, b.tokens);
            EXPECT_EQ(a.avg_logprob, b.avg_logprob);
            EXPECT_EQ(a.temperature, b.temperature);
            EXPECT_EQ(a.start, b.start);
          }
          EXPECT_EQ(transcript->text, alone[index].text);
        });
    EXPECT_EQ(expected_index, inputs.size());
  }
  EXPECT_GT(model->most_rows, 2);
}

// Threads of the pool read audio and choose tokens, and only the caller's own thread asks it whether to go on.
TEST_F(EngineInput, AsksAndTellsItsCallerOnTheThreadOfTheCall) {
  use(say({at(0), 0, at(3)}));
  // The first eight recordings are asked for at most 8 + 1 times before they are read, 8 · 13 times while they are, if the
  // caller's thread should read all, and a few times in their steps; all together for more than once a recording.
  constexpr int kRecordings = 200, kAsked = 125;
  for (const bool reads_ahead : {false, true}) {
    ThreadPool others(4);
    auto many = *AedTranscriber::create(model, {.pool = &others, .isa = Isa::scalar}, 8, reads_ahead);
    const auto owner = std::this_thread::get_id();
    std::atomic<int> asked = 0, elsewhere = 0, cancelled = 0;
    Callbacks callbacks;
    callbacks.cancelled = [&] {
      if (std::this_thread::get_id() != owner) ++elsewhere;
      return ++asked > kAsked;
    };
    callbacks.progress = [&](double, double) {
      if (std::this_thread::get_id() != owner) ++elsewhere;
    };
    many->transcribe_many(
        kRecordings,
        [&](std::size_t i) -> Result<std::unique_ptr<AudioSource>> {
          return std::unique_ptr<AudioSource>(std::make_unique<TestAudio>(babble(3, 200 + 2.0 * static_cast<double>(i))));
        },
        english(), callbacks, [&](std::size_t, Result<Transcript> t) { cancelled += !t; });
    EXPECT_EQ(elsewhere, 0);
    EXPECT_GT(cancelled, 0);
  EXPECT_LT(cancelled, kRecordings);
  }
}

// A source whose reads take their time, so that it is still read when something else happens.
class SlowAudio final : public AudioSource {
 public:
  explicit SlowAudio(std::vector<float> samples) : audio_(std::move(samples)) {}
  const AudioInfo& info() const override { return audio_.info(); }
  Result<std::size_t> read(std::span<float> out) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ++reads;
    return audio_.read(out);
  }
  const std::optional<std::string>& truncated() const override { return audio_.truncated(); }
  const std::vector<std::string>& warnings() const override { return audio_.warnings(); }
  Status rewind() override { return audio_.rewind(); }
  bool rewindable() const override { return true; }

  static inline std::atomic<int> reads = 0;  // of all

 private:
  TestAudio audio_;
};

// Who cancels does not wait until what is read ahead has come to its end.
TEST_F(EngineInput, StopsWhatIsReadAhead) {
  use(say({at(0), 0, at(3)}));
  ThreadPool others(2);
  auto many = *AedTranscriber::create(model, {.pool = &others, .isa = Isa::scalar}, 2, true);
  int asked = 0, cancelled = 0;
  Callbacks callbacks;
  callbacks.cancelled = [&] { return ++asked > 40; };
  SlowAudio::reads = 0;
  many->transcribe_many(
      3,
      [&](std::size_t i) -> Result<std::unique_ptr<AudioSource>> {
        return std::unique_ptr<AudioSource>(std::make_unique<SlowAudio>(babble(i == 2 ? 1200 : 3)));
      },
      english(), callbacks, [&](std::size_t, const Result<Transcript>& t) { cancelled += !t; });
  EXPECT_EQ(cancelled, 1);
  EXPECT_LT(SlowAudio::reads, 1200 * 16000 / 4097 / 2);
}

TEST_F(EngineInput, OfABatchOfOneEachIsOverBeforeTheNextIsOpened) {
  use(say({at(0), 0, at(3)}));
  ThreadPool others(2);
  for (const bool reads_ahead : {false, true}) {
    auto many = *AedTranscriber::create(model, {.pool = &others, .isa = Isa::scalar}, 1, reads_ahead);
    std::size_t over = 0;
    many->transcribe_many(
        4,
        [&](std::size_t i) -> Result<std::unique_ptr<AudioSource>> {
          EXPECT_EQ(over, i);
          return std::unique_ptr<AudioSource>(std::make_unique<TestAudio>(babble(3)));
        },
        english(), {}, [&](std::size_t, const Result<Transcript>&) { ++over; });
    EXPECT_EQ(over, 4u);
  }
}

// An internal error meets recordings that are read ahead: they are lost with it, and the next call finds all in order.
TEST_F(EngineInput, AnErrorWaitsForWhatIsReadAhead) {
  use(say({at(0), 0, at(3)}));
  ThreadPool others(2);
  auto many = *AedTranscriber::create(model, {.pool = &others, .isa = Isa::scalar}, 2, true);
  const auto run_all = [&] {
    std::vector<std::string> texts;
    many->transcribe_many(
        6,
        [&](std::size_t) -> Result<std::unique_ptr<AudioSource>> {
          return std::unique_ptr<AudioSource>(std::make_unique<SlowAudio>(babble(3)));
        },
        english(), {}, [&](std::size_t, Result<Transcript> t) { texts.push_back(t ? t->text : t.error().what); });
    return texts;
  };
  for (const int failing : {0, 2, 4}) {
    int calls = 0;
    model->called = [&](std::string_view) {
      if (calls++ == failing) throw std::runtime_error("a broken encoder");
    };
    EXPECT_THROW(run_all(), std::runtime_error) << failing;
    model->called = [](std::string_view) {};
    EXPECT_EQ(run_all(), std::vector<std::string>(6, " a")) << failing;
  }
}

TEST_F(EngineInput, ABadRecordingStopsNoOther) {
  use(say({at(0), 0, at(3)}));
  ThreadPool others(2);
  for (const bool reads_ahead : {false, true}) {
    auto many = *AedTranscriber::create(model, {.pool = &others, .isa = Isa::scalar}, 2, reads_ahead);
    std::vector<bool> good;
    many->transcribe_many(
        6,
        [&](std::size_t i) -> Result<std::unique_ptr<AudioSource>> {
          if (i == 1 || i == 4) return unexpected(ErrorCode::not_found, "no such file");
          auto audio = std::make_unique<TestAudio>(babble(3));
          if (i == 2) audio->fail_at = 0;
          return std::unique_ptr<AudioSource>(std::move(audio));
        },
        english(), {}, [&](std::size_t, Result<Transcript> t) { good.push_back(t.has_value()); });
    EXPECT_EQ(good, (std::vector<bool>{true, false, false, true, false, true}));
  }
}

}  // namespace
}  // namespace oasr::engine
