// The engine over a scripted model.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "engine/fake_model.h"
#include "engine/transcriber.h"

namespace oasr::engine {
namespace {

// Something that is neither silent nor steady: a tone whose loudness swings; `pitch` tells
// recordings apart.
std::vector<float> babble(double seconds, double pitch = 300) {
  std::vector<float> samples(static_cast<std::size_t>(seconds * 16000));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double t = static_cast<double>(i) / 16000;
    const double swing = 0.5 + 0.5 * std::sin(2 * std::numbers::pi * 3 * t);
    samples[i] = static_cast<float>(0.3 * swing * std::sin(2 * std::numbers::pi * pitch * t));
  }
  return samples;
}

std::vector<float> joined(std::vector<float> a, const std::vector<float>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Samples as a source; can play a pipe, break off, or fail.
class TestAudio final : public AudioSource {
 public:
  explicit TestAudio(std::vector<float> samples, bool pipe = false)
      : samples_(std::move(samples)), pipe_(pipe) {}
  const AudioInfo& info() const override { return info_; }
  Result<std::size_t> read(std::span<float> out) override {
    if (fail_at && place_ >= *fail_at) return unexpected(ErrorCode::bad_audio, "NaN at sample 7");
    const std::size_t size = std::min({out.size(), samples_.size() - place_, std::size_t{4097}});
    std::copy_n(samples_.begin() + static_cast<std::ptrdiff_t>(place_), size, out.begin());
    place_ += size;
    return size;
  }
  const std::optional<std::string>& truncated() const override { return truncation; }
  const std::vector<std::string>& warnings() const override { return warnings_; }
  Status rewind() override {
    place_ = 0;
    ++rewinds;
    return {};
  }
  bool rewindable() const override { return !pipe_; }

  std::optional<std::string> truncation;
  std::optional<std::size_t> fail_at;
  int rewinds = 0;

 private:
  AudioInfo info_;
  std::vector<float> samples_;
  bool pipe_;
  std::size_t place_ = 0;
  std::vector<std::string> warnings_;
};

TranscribeOptions english() {
  TranscribeOptions options;
  options.language = "en";
  return options;
}

class Engine : public ::testing::Test {
 protected:
  void use(FakeScript script, bool multilingual = true) {
    model = std::make_shared<FakeModel>(std::move(script), multilingual);
    transcriber = *Transcriber::create(model, {.pool = &pool, .isa = Isa::scalar});
  }
  Result<Transcript> run(std::vector<float> samples, const TranscribeOptions& options = english(),
                         const Callbacks& callbacks = {}) {
    TestAudio audio(std::move(samples));
    return transcriber->transcribe(audio, options, callbacks);
  }
  static bool has_warning(const Transcript& transcript, std::string_view kind) {
    for (const auto& warning : transcript.warnings) {
      if (warning.kind == kind) return true;
    }
    return false;
  }

  ThreadPool pool{1};
  std::shared_ptr<FakeModel> model;
  std::unique_ptr<Transcriber> transcriber;
};

TEST_F(Engine, GivesTheSegmentsBetweenTimestamps) {
  use(say({at(0), 0, 1, at(2), at(2), 2, at(4.5)}));
  const auto transcript = run(babble(5));
  ASSERT_TRUE(transcript) << transcript.error().message();
  EXPECT_EQ(transcript->text, " a b c");
  EXPECT_EQ(transcript->language, "en");
  EXPECT_EQ(transcript->duration, 5.0);
  ASSERT_EQ(transcript->segments.size(), 2u);
  EXPECT_EQ(transcript->segments[0].text, " a b");
  EXPECT_EQ(transcript->segments[0].end, 2.0);
  EXPECT_EQ(transcript->segments[1].start, 2.0);
  EXPECT_EQ(transcript->segments[1].end, 4.5);
  EXPECT_EQ(transcript->segments[1].id, 1);
  EXPECT_EQ(transcript->segments[1].tokens, (std::vector<TokenId>{at(2), 2, at(4.5)}));
  EXPECT_TRUE(transcript->warnings.empty());
  EXPECT_EQ(model->encoded, 1);
  ASSERT_EQ(model->prompts.size(), 1u);
  EXPECT_EQ(model->prompts[0], (std::vector<TokenId>{kSot, kEnglish, kTranscribe}));
}

TEST_F(Engine, SeeksToTheLastPairOfTimestampsAndDecodesTheRestAgain) {
  use([](const FakeStep& step, std::span<float> logits) {
    if (step.window == 0) return say({at(0), 0, at(20), at(20), 1})(step, logits);
    say({at(0), 2, at(5)})(step, logits);
  });
  const auto transcript = run(babble(34));
  ASSERT_TRUE(transcript);
  EXPECT_EQ(transcript->text, " a c");
  ASSERT_EQ(transcript->segments.size(), 2u);
  EXPECT_EQ(transcript->segments[1].seek, 2000);
  EXPECT_EQ(transcript->segments[1].start, 20.0);
  EXPECT_EQ(transcript->segments[1].end, 25.0);
  EXPECT_EQ(model->encoded, 2);
}

TEST_F(Engine, GoesOnAWholeWindowAfterASingleTimestampEnding) {
  use(say({at(0), 0, at(20), at(20), 1, at(25)}));
  const auto transcript = run(babble(61));
  ASSERT_TRUE(transcript);
  EXPECT_EQ(model->encoded, 3);
  EXPECT_EQ(transcript->segments.back().seek, 6000);
}

TEST_F(Engine, PromptsWithThePreviousTextUnlessToldNotTo) {
  use(say({at(0), 0, at(10)}));
  auto options = english();
  ASSERT_TRUE(run(babble(31), options));
  ASSERT_EQ(model->prompts.size(), 2u);
  EXPECT_EQ(model->prompts[1],
            (std::vector<TokenId>{kSotPrev, at(0), 0, at(10), kSot, kEnglish, kTranscribe}));
  options.condition_on_previous_text = false;
  model->prompts.clear();
  ASSERT_TRUE(run(babble(31), options));
  EXPECT_EQ(model->prompts[1], (std::vector<TokenId>{kSot, kEnglish, kTranscribe}));
}

TEST_F(Engine, CarriesTheInitialPromptWhenAsked) {
  use(say({at(0), 0, at(10)}));
  auto options = english();
  options.initial_prompt = " xy ";
  options.condition_on_previous_text = false;
  ASSERT_TRUE(run(babble(31), options));
  EXPECT_EQ(model->prompts[0],
            (std::vector<TokenId>{kSotPrev, 23, 50, kSot, kEnglish, kTranscribe}));
  EXPECT_EQ(model->prompts[1], (std::vector<TokenId>{kSot, kEnglish, kTranscribe}));
  options.carry_initial_prompt = true;
  model->prompts.clear();
  ASSERT_TRUE(run(babble(31), options));
  EXPECT_EQ(model->prompts[1], model->prompts[0]);
}

TEST_F(Engine, KeepsLongPromptsWithinHalfTheContext) {
  std::vector<TokenId> long_text{at(0)};
  for (int i = 0; i < 200; ++i)
    long_text.push_back(static_cast<TokenId>(decode::mix64(static_cast<std::uint64_t>(i)) % 52));
  long_text.push_back(at(29));
  use(say(long_text));
  auto options = english();
  options.compression_ratio_threshold.reset();
  options.initial_prompt = "abc";
  ASSERT_TRUE(run(babble(95), options));
  ASSERT_EQ(model->prompts.size(), 4u);
  EXPECT_EQ(model->prompts[3].size(), 1u + 223 + 3);
}

TEST_F(Engine, StartsTheFirstWindowWithThePrefix) {
  use([](const FakeStep& step, std::span<float> logits) {
    const bool prefixed = !step.said.empty() && step.said[0] == 16;
    say(prefixed ? std::vector<TokenId>{16, at(0), 0, at(3)}
                 : std::vector<TokenId>{at(0), 1, at(3)})(step, logits);
  });
  auto options = english();
  options.prefix = "q";
  const auto transcript = run(babble(31), options);
  ASSERT_TRUE(transcript);
  EXPECT_EQ(transcript->text, " a b");
}

TEST_F(Engine, WithoutTimestampsAWindowIsASegment) {
  use(say({0, 1}));
  auto options = english();
  options.timestamps = false;
  const auto transcript = run(babble(35), options);
  ASSERT_TRUE(transcript);
  ASSERT_EQ(transcript->segments.size(), 2u);
  EXPECT_EQ(transcript->segments[0].end, 30.0);
  EXPECT_EQ(transcript->segments[1].end, 35.0);
  EXPECT_EQ(model->prompts[0], (std::vector<TokenId>{kSot, kEnglish, kTranscribe, kNoTimestamps}));
}

TEST_F(Engine, TriesTheTemperaturesInOrderAndKeepsTheLast) {
  use(say({at(0), 0, at(3)}, 0.2f));  // unlikely at any temperature
  auto options = english();
  options.temperatures = {0, 0.4};
  options.best_of = 3;
  options.logprob_threshold = -0.5;
  const auto transcript = run(babble(3), options);
  ASSERT_TRUE(transcript);
  EXPECT_TRUE(has_warning(*transcript, "fallback_exhausted"));
  EXPECT_EQ(model->encoded, 1);
  EXPECT_EQ(model->most_rows, 3);
  for (const auto& segment : transcript->segments) EXPECT_EQ(segment.temperature, 0.4);
}

TEST_F(Engine, StopsFallingBackWhenATemperatureIsGoodEnough) {
  // Repeats itself at temperature 0; the samples of higher temperatures end.
  use([](const FakeStep& step, std::span<float> logits) {
    if (step.said.empty()) {
      logits[kTime] = 20;
    } else {
      logits[0] = 2.0f;  // greedy: " a" for ever
      logits[kEot] = 1.9f;
      for (int i = 0; i < 52; ++i) logits[static_cast<std::size_t>(i)] += 1.0f;
    }
  });
  auto options = english();
  options.logprob_threshold.reset();
  options.temperatures = {0, 1.0, 1.0, 1.0};
  options.best_of = 1;
  const auto transcript = run(babble(3), options);
  ASSERT_TRUE(transcript);
  EXPECT_FALSE(has_warning(*transcript, "fallback_exhausted"));
  ASSERT_FALSE(transcript->segments.empty());
  EXPECT_EQ(transcript->segments[0].temperature, 1.0);
}

TEST_F(Engine, DoesNotSpendTemperaturesOnAWindowWithoutSpeech) {
  use([](const FakeStep& step, std::span<float> logits) {
    if (step.row.back() == kSot) logits[kNoSpeech] = 20;
    say({at(0), 0, at(3)}, 0.2f)(step, logits);
  });
  auto options = english();
  options.logprob_threshold = -0.5;
  const auto transcript = run(babble(3), options);
  ASSERT_TRUE(transcript);
  EXPECT_EQ(transcript->text, "");
  EXPECT_TRUE(has_warning(*transcript, "no_speech"));
  EXPECT_TRUE(has_warning(*transcript, "empty_result"));
  EXPECT_EQ(model->most_rows, 1);
  EXPECT_EQ(model->prompts.size(), 1u);
}

TEST_F(Engine, KeepsLikelyTextDespiteTheNoSpeechToken) {
  use([](const FakeStep& step, std::span<float> logits) {
    if (step.row.back() == kSot) logits[kNoSpeech] = 40;
    say({at(0), 0, at(3)})(step, logits);
  });
  const auto transcript = run(babble(3));
  ASSERT_TRUE(transcript);
  EXPECT_EQ(transcript->text, " a");
  EXPECT_GT(transcript->segments[0].no_speech_prob, 0.99);
}

TEST_F(Engine, SkipsSilenceNoiseAndTonesAtNoCost) {
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

TEST_F(Engine, DecodesQuietWindowsWhenTheGateIsOff) {
  use(say({at(0), 24, at(3)}));
  auto options = english();
  options.silence_dbfs.reset();
  const auto transcript = run(std::vector<float>(80000, 0.0f), options);
  ASSERT_TRUE(transcript);
  EXPECT_EQ(transcript->text, " y");
}

TEST_F(Engine, DetectsTheLanguageInTheFirstWindowWithASignal) {
  use([](const FakeStep& step, std::span<float> logits) {
    if (step.row.size() == 1) logits[kGerman] = 5;
    say({at(0), 0, at(3)})(step, logits);
  });
  const auto transcript =
      run(joined(std::vector<float>(31 * 16000, 0.0f), babble(10)), TranscribeOptions{});
  ASSERT_TRUE(transcript);
  EXPECT_EQ(transcript->language, "de");
  EXPECT_GT(transcript->language_probability, 0.9);
  EXPECT_EQ(model->encoded, 1);
  EXPECT_EQ(model->prompts.back(), (std::vector<TokenId>{kSot, kGerman, kTranscribe}));
  EXPECT_EQ(transcript->segments[0].seek, 3000);
}

TEST_F(Engine, ChecksADoubtfulLanguageAsTheReferencePads) {
  use([](const FakeStep& step, std::span<float> logits) {
    // Doubtful (the noise decides) where the padding is 0.0, sure where it is silence.
    if (step.row.size() == 1 && step.mel[2999] != 0.0f) logits[kGerman] = 5;
    say({at(0), 0, at(3)})(step, logits);
  });
  const auto transcript = run(babble(10), TranscribeOptions{});
  ASSERT_TRUE(transcript);
  // Of two languages one always has half: no doubt, no second pass.
  EXPECT_EQ(model->encoded, 1);
  EXPECT_GE(transcript->language_probability, 0.5);
}

TEST_F(Engine, EnglishModelsHaveNoLanguageTokens) {
  use(say({at(0), 0, at(3)}), false);
  const auto transcript = run(babble(3), TranscribeOptions{});
  ASSERT_TRUE(transcript);
  EXPECT_EQ(transcript->language, "en");
  EXPECT_EQ(model->prompts[0], std::vector<TokenId>{kSot});
}

TEST_F(Engine, DecodesTheClipsOnly) {
  use(say({at(0), 0, at(3)}));
  auto options = english();
  options.clip_timestamps = {5, 10, 40, 45};
  const auto transcript = run(babble(60), options);
  ASSERT_TRUE(transcript);
  ASSERT_EQ(transcript->segments.size(), 2u);
  EXPECT_EQ(transcript->segments[0].start, 5.0);
  EXPECT_EQ(transcript->segments[1].start, 40.0);
  options.clip_timestamps = {50};  // to the end
  EXPECT_EQ(run(babble(60), options)->segments.size(), 1u);
  options.clip_timestamps = {70, 80};  // behind the end
  EXPECT_TRUE(run(babble(60), options)->segments.empty());
}

TEST_F(Engine, EndsARecordingWithinAWindow) {
  use([](const FakeStep& step, std::span<float> logits) {
    // Frames after the end are 0.0 exactly; those of the recording are not.
    EXPECT_NE(step.mel[20 * 3000 + 299], 0.0f);
    for (int m = 0; m < 80; ++m)
      EXPECT_EQ(step.mel[static_cast<std::size_t>(m * 3000 + 300)], 0.0f);
    say({at(0), 0, at(2)})(step, logits);
  });
  ASSERT_TRUE(run(babble(3)));
}

TEST_F(Engine, LongFilesAndShortOnesGiveTheSameWindows) {
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

TEST_F(Engine, AShortPipeEqualsAFile) {
  use(say({at(0), 0, at(3)}));
  TestAudio pipe(babble(20), true);
  const auto transcript = transcriber->transcribe(pipe, english());
  ASSERT_TRUE(transcript);
  EXPECT_TRUE(transcript->warnings.empty());
}

TEST_F(Engine, TinyRecordingsAreNoError) {
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

TEST_F(Engine, PassesErrorsAndTruncationOn) {
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

TEST_F(Engine, CancelsBetweenSteps) {
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

TEST_F(Engine, CallsBackSegmentsAsTheyAreDecodedAndProgress) {
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

TEST_F(Engine, SaysWhenTheTokenLimitIsReached) {
  use(say(std::vector<TokenId>(400, 3)));
  auto options = english();
  options.compression_ratio_threshold.reset();
  options.timestamps = false;
  auto transcript = run(babble(5), options);
  ASSERT_TRUE(transcript);
  EXPECT_TRUE(has_warning(*transcript, "token_limit"));
  EXPECT_EQ(transcript->segments[0].tokens.size(), 224u);
  options.max_new_tokens = 7;
  transcript = run(babble(5), options);
  EXPECT_EQ(transcript->segments[0].tokens.size(), 7u);
}

TEST_F(Engine, SingleWindowKeepsAnUnfinishedSegment) {
  use(say({at(0), 0, at(2), at(2), 1}));
  auto options = english();
  options.single_window = true;
  const auto transcript = run(babble(4), options);
  ASSERT_TRUE(transcript);
  EXPECT_EQ(transcript->text, " a b");
  EXPECT_EQ(transcript->segments[1].end, 4.0);
  EXPECT_EQ(model->encoded, 1);
  const auto longer = run(babble(31), options);
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().code, ErrorCode::invalid_argument);
}

TEST_F(Engine, GivesAlternativesOfOneWindow) {
  use([](const FakeStep& step, std::span<float> logits) {
    if (step.said.empty()) {
      logits[2] = logits[3] = 10;
      logits[3] += 0.5f;
    } else {
      logits[kEot] = 10;
    }
  });
  auto options = english();
  options.timestamps = false;
  options.beam_size = 3;
  options.best_of = 3;
  options.n_best = 2;
  auto transcript = run(babble(5), options);
  ASSERT_TRUE(transcript) << transcript.error().message();
  ASSERT_EQ(transcript->alternatives.size(), 2u);
  EXPECT_EQ(transcript->alternatives[0].text, " d");
  EXPECT_EQ(transcript->alternatives[1].text, " c");
  EXPECT_GE(transcript->alternatives[0].avg_logprob, transcript->alternatives[1].avg_logprob);
  transcript = run(babble(35), options);
  EXPECT_TRUE(transcript->alternatives.empty());
  EXPECT_TRUE(has_warning(*transcript, "no_alternatives"));
}

TEST_F(Engine, TimesWordsByTheirAttention) {
  use(say({at(0), 0, 27, 52, 2, at(3)}));
  auto options = english();
  options.word_timestamps = true;
  const auto transcript = run(babble(4), options);
  ASSERT_TRUE(transcript);
  ASSERT_EQ(transcript->segments.size(), 1u);
  const auto& words = transcript->segments[0].words;
  ASSERT_EQ(words.size(), 2u);
  EXPECT_EQ(words[0].text, " ab.");
  EXPECT_EQ(words[1].text, " c");
  // Token i of the sequence looks at 0.4 i s; a word starts where the token that predicts it, here
  // the sixth, begins to look.
  EXPECT_NEAR(words[1].start, 2.4, 0.05);
  EXPECT_GT(words[0].probability, 0.9);
  EXPECT_EQ(transcript->segments[0].start, words[0].start);
  EXPECT_EQ(transcript->segments[0].end, words[1].end);
}

TEST_F(Engine, ManyTogetherEqualEachAloneBitForBit) {
  // Text, lengths and fallback depend on the audio through the pseudo-random logits.
  use([](const FakeStep& step, std::span<float> logits) {
    for (float& x : logits) x *= 6;
    if (step.said.size() > 3) logits[kEot] += 0.5f * static_cast<float>(step.said.size());
  });
  auto options = english();
  options.seed = 5;
  options.best_of = 2;
  std::vector<std::vector<float>> inputs;
  for (int i = 0; i < 7; ++i) inputs.push_back(babble(3 + 13.0 * i, 200 + 31.0 * i));
  std::vector<Transcript> alone;
  for (const auto& input : inputs) alone.push_back(*run(input, options));
  for (const int batch : {2, 3, 8}) {
    auto many = *Transcriber::create(model, {.pool = &pool, .isa = Isa::scalar}, batch);
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

TEST_F(Engine, ABadRecordingStopsNoOther) {
  use(say({at(0), 0, at(3)}));
  auto many = *Transcriber::create(model, {.pool = &pool, .isa = Isa::scalar}, 2);
  std::vector<bool> good;
  many->transcribe_many(
      4,
      [&](std::size_t i) -> Result<std::unique_ptr<AudioSource>> {
        if (i == 1) return unexpected(ErrorCode::not_found, "no such file");
        auto audio = std::make_unique<TestAudio>(babble(3));
        if (i == 2) audio->fail_at = 0;
        return std::unique_ptr<AudioSource>(std::move(audio));
      },
      english(), {}, [&](std::size_t, Result<Transcript> t) { good.push_back(t.has_value()); });
  EXPECT_EQ(good, (std::vector<bool>{true, false, false, true}));
}

}  // namespace
}  // namespace oasr::engine
