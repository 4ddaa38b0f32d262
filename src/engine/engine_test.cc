// What the engine makes of windows, over a scripted model.
#include "engine/engine_fixture.h"
#include "testing/paths.h"

namespace oasr::engine {
namespace {

using Engine = EngineFixture;

// Eleven seconds of a real voice.
std::vector<float> speech() {
  return *read_all(**open_audio(testing::project_dir() / "assets/samples/jfk.flac"));
}

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

TEST_F(Engine, ForgetsThePreviousTextAfterAHighTemperature) {
  use(say({at(0), 0, at(10)}));
  auto options = english();
  options.best_of = 1;
  for (const double temperature : {0.5, 0.6}) {
    options.temperatures = {temperature};
    model->prompts.clear();
    ASSERT_TRUE(run(babble(31), options));
    ASSERT_EQ(model->prompts.size(), 2u);
    EXPECT_EQ(model->prompts[1].size(), temperature > 0.5 ? 3u : 7u);
  }
}

TEST_F(Engine, SamplesDifferentlyInEveryWindow) {
  // Every window has the same logits, flat over the text.
  use([](const FakeStep& step, std::span<float> logits) {
    std::fill(logits.begin(), logits.end(), -50.0f);
    std::fill_n(logits.begin(), 52, 0.0f);
    if (step.said.size() == 12) logits[kEot] = 50;
  });
  auto options = english();
  options.timestamps = false;
  options.temperatures = {1.0};
  options.best_of = 1;
  options.logprob_threshold.reset();
  options.no_speech_threshold.reset();
  const auto transcript = run(babble(61), options);
  ASSERT_TRUE(transcript);
  ASSERT_EQ(transcript->segments.size(), 3u);
  EXPECT_NE(transcript->segments[0].tokens, transcript->segments[1].tokens);
  EXPECT_EQ(run(babble(61), options)->segments[1].tokens, transcript->segments[1].tokens);
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
    const bool prefixed = step.said.size() > 1 && step.said[1] == 16;
    say(prefixed ? std::vector<TokenId>{at(0), 16, 0, at(3)}
                 : std::vector<TokenId>{at(0), 1, at(3)})(step, logits);
  });
  auto options = english();
  options.prefix = "q";
  const auto transcript = run(babble(31), options);
  ASSERT_TRUE(transcript);
  EXPECT_EQ(transcript->text, " q a b");  // a forced beginning is part of the text
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
  const auto transcript = run(speech(), options);
  ASSERT_TRUE(transcript);
  EXPECT_TRUE(has_warning(*transcript, "fallback_exhausted"));
  EXPECT_EQ(model->encoded, 1);
  EXPECT_EQ(model->most_rows, 3);
  for (const auto& segment : transcript->segments) EXPECT_EQ(segment.temperature, 0.4);
}

TEST_F(Engine, DoesNotFallBackWhereVoiceActivityDetectionFindsNoSpeech) {
  use(say({at(0), 0, at(3)}, 0.2f));  // unlikely at any temperature
  auto options = english();
  options.temperatures = {0, 0.4};
  options.logprob_threshold = -0.5;
  auto transcript = run(joined(babble(35), speech()), options);
  ASSERT_TRUE(transcript);
  ASSERT_FALSE(transcript->segments.empty());
  for (const auto& segment : transcript->segments) {
    EXPECT_EQ(segment.seek, 3000);  // the second window, which holds the speech
    EXPECT_EQ(segment.temperature, 0.4);
  }
  EXPECT_TRUE(has_warning(*transcript, "no_speech"));
  EXPECT_TRUE(has_warning(*transcript, "fallback_exhausted"));
  EXPECT_EQ(model->prompts.size(), 1u + 2);
  options.silence_dbfs.reset();
  transcript = run(babble(30), options);
  EXPECT_FALSE(has_warning(*transcript, "no_speech"));
  EXPECT_EQ(transcript->segments.at(0).temperature, 0.4);
}

TEST_F(Engine, KeepsALikelyTextWithoutAskingForSpeech) {
  use(say({at(0), 0, at(3)}));
  EXPECT_EQ(run(babble(3))->text, " a");
}

TEST_F(Engine, KeepsTheOnlyTemperaturesTextWithoutAskingForSpeech) {
  use(say({at(0), 0, at(3)}, 0.2f));
  auto options = english();
  options.temperatures = {0};
  options.logprob_threshold = -0.5;
  const auto transcript = run(babble(3), options);
  EXPECT_TRUE(has_warning(*transcript, "fallback_exhausted"));
  EXPECT_FALSE(has_warning(*transcript, "no_speech"));
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
  const auto transcript = run(speech(), options);
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

}  // namespace
}  // namespace oasr::engine
