// CTC models in the engine: what is cut, refused, told, and the same however it comes. On a small random U2++.
#include <gmock/gmock.h>

#include "engine/ctc_fixture.h"
#include "engine/ctc_plan.h"
#include "engine/streaming.h"
#include "engine/utterance_source.h"

namespace oasr::engine {
namespace {

using ::testing::HasSubstr;

struct CtcEngine : CtcFixture {
  void use_nan_in(const std::string& weight) {
    Checkpoint checkpoint = models::conformer::random_checkpoint(models::conformer::small_train_yaml());
    auto& tensor = checkpoint.tensors.tensors.at(weight);
    broken.assign(static_cast<std::size_t>(tensor.shape.elements()), std::nanf(""));
    tensor.bytes = std::as_bytes(std::span(broken));
    use(checkpoint);
  }
  std::string refusal(const TranscribeOptions& options) {
    const auto plan = make_ctc_plan(options, *model);
    return plan ? "accepted" : plan.error().message();
  }
  std::unique_ptr<StreamingSessions> sessions(const StreamingOptions& streaming = {},
                                              const TranscribeOptions& options = {}) {
    return *StreamingSessions::create(model, options, streaming, context);
  }
  // All events of a recording given in pieces.
  std::vector<StreamEvent> stream(const std::vector<float>& samples, std::size_t piece,
                                  const StreamingOptions& streaming = {}, int rate = 16000) {
    const auto all = sessions(streaming);
    const auto session = *all->open(rate);
    for (std::size_t at = 0; at < samples.size(); at += piece) {
      EXPECT_TRUE(all->accept(session, std::span(samples).subspan(at, std::min(piece, samples.size() - at))));
      while (all->ready()) all->step();
    }
    EXPECT_TRUE(all->finish(session));
    while (all->ready()) all->step();
    return all->take_events(session);
  }

  std::vector<float> broken;  // numbers of the model
};

std::string told(const std::vector<StreamEvent>& events) {
  std::string text;
  for (const StreamEvent& event : events) {
    text += std::to_string(static_cast<int>(event.kind)) + " " + std::to_string(event.utterance) + " " + event.text +
            " " + std::to_string(event.stable) + " " + std::to_string(event.time) + " " + event.endpoint + " " +
            std::to_string(event.segment.start) + " " + std::to_string(event.segment.end) + "\n";
  }
  return text;
}

TEST_F(CtcEngine, RefusesOptionsOfOtherFamiliesByName) {
  const std::pair<void (*)(TranscribeOptions&), const char*> refused[] = {
      {[](auto& o) { o.language = "en"; }, "language"},
      {[](auto& o) { o.task = "translate"; }, "task"},
      {[](auto& o) { o.initial_prompt = "x"; }, "initial_prompt"},
      {[](auto& o) { o.temperatures = {0.5}; }, "temperatures"},
      {[](auto& o) { o.no_speech_threshold = 0.1; }, "no_speech_threshold"},
      {[](auto& o) { o.clip_timestamps = {1, 2}; }, "clip_timestamps"},
      {[](auto& o) { o.suppress_tokens = {3}; }, "suppress_tokens"},
      {[](auto& o) { o.max_new_tokens = 3; }, "max_new_tokens"},
      {[](auto& o) { o.silence_dbfs.reset(); }, "silence_dbfs"},
      {[](auto& o) { o.single_window = true; }, "single_window"},
      {[](auto& o) { o.length_penalty = 0.5; }, "length_penalty"},
  };
  for (const auto& [change, option] : refused) {
    TranscribeOptions options;
    change(options);
    EXPECT_THAT(refusal(options), HasSubstr(option));
    EXPECT_THAT(refusal(options), HasSubstr("Whisper's family"));
  }
  EXPECT_EQ(refusal({}), "accepted");
}

TEST_F(CtcEngine, RefusesWhatAModeOrTheModelDoesNotHave) {
  const std::pair<void (*)(TranscribeOptions&), const char*> refused[] = {
      {[](auto& o) { o.ctc.decode = "beam"; }, "is no decode mode"},
      {[](auto& o) { o.ctc.decode = "ctc_greedy_search", o.beam_size = 5; }, "has no beam"},
      {[](auto& o) { o.ctc.decode = "ctc_greedy_search", o.n_best = 2; }, "gives one text"},
      {[](auto& o) { o.n_best = 11; }, "n_best"},
      {[](auto& o) { o.beam_size = 65; }, "beam"},
      {[](auto& o) { o.ctc.num_left_chunks = 2; }, "needs a chunk size"},
      {[](auto& o) { o.ctc.chunk_size = -1; }, "chunk_size"},
      {[](auto& o) { o.ctc.reverse_weight = 1.5; }, "reverse_weight"},
      {[](auto& o) { o.ctc.decode = "ctc_greedy_search", o.ctc.ctc_weight = 0.5; }, "ctc_weight"},
      {[](auto& o) { o.ctc.decode = "attention", o.ctc.reverse_weight = 0.5; }, "reverse_weight"},
      {[](auto& o) { o.ctc.hotwords = {{""}}; }, "a phrase is empty"},
      {[](auto& o) { o.ctc.hotwords = {{"A\xFF"}}; }, "not UTF-8"},
      {[](auto& o) { o.ctc.decode = "joint", o.ctc.hotwords = {{"AB"}}; }, "hotwords"},
  };
  for (const auto& [change, what] : refused) {
    TranscribeOptions options;
    change(options);
    EXPECT_THAT(refusal(options), HasSubstr(what));
  }
  use(models::conformer::small_train_yaml(R"("causal": false)", "transformer"));
  TranscribeOptions options;
  options.ctc.chunk_size = 8;
  EXPECT_THAT(refusal(options), HasSubstr("causal is false"));
  options = {};
  options.ctc.reverse_weight = 0.1;
  EXPECT_THAT(refusal(options), HasSubstr("no right-to-left decoder"));
}

TEST_F(CtcEngine, GivesATextAloneAndAmongOthersInEveryMode) {
  std::vector<std::vector<float>> recordings;
  for (int i = 0; i < 5; ++i) recordings.push_back(babble(0.5 + 0.4 * i, 200 + 70 * i));
  for (const char* mode : {"ctc_greedy_search", "ctc_prefix_beam_search", "attention_rescoring", "attention", "joint"}) {
    TranscribeOptions options;
    options.ctc.decode = mode;
    options.word_timestamps = true;
    if (std::string_view(mode) != "ctc_greedy_search") options.n_best = 3;
    std::vector<Transcript> alone;
    for (const auto& samples : recordings) alone.push_back(run(samples, options).value());
    for (const int batch : {2, 8}) {
      std::size_t next = 0;
      transcriber(batch)->transcribe_many(
          recordings.size(),
          [&](std::size_t i) -> Result<std::unique_ptr<AudioSource>> {
            return std::unique_ptr<AudioSource>(std::make_unique<TestAudio>(recordings[i]));
          },
          options, {},
          [&](std::size_t i, Result<Transcript> result) {
            EXPECT_EQ(i, next++);
            ASSERT_TRUE(result) << result.error().message();
            EXPECT_EQ(result->text, alone[i].text) << mode;
            ASSERT_EQ(result->alternatives.size(), alone[i].alternatives.size());
            for (std::size_t k = 0; k < alone[i].alternatives.size(); ++k) {
              EXPECT_EQ(result->alternatives[k].score, alone[i].alternatives[k].score);
            }
            ASSERT_EQ(result->segments.size(), alone[i].segments.size());
            for (std::size_t k = 0; k < alone[i].segments.size(); ++k) {
              EXPECT_EQ(result->segments[k].avg_logprob, alone[i].segments[k].avg_logprob);
              EXPECT_EQ(result->segments[k].words.size(), alone[i].segments[k].words.size());
            }
          });
      EXPECT_EQ(next, recordings.size());
    }
  }
}

TEST_F(CtcEngine, FlagsARecordingThatIsTooShortToHear) {
  for (const std::size_t samples : {std::size_t{0}, std::size_t{100}, std::size_t{500}, std::size_t{1300}}) {
    const Transcript transcript = run(std::vector<float>(samples, 0.1f)).value();
    EXPECT_EQ(transcript.text, "");
    ASSERT_EQ(transcript.warnings.size(), 1u);
    EXPECT_EQ(transcript.warnings[0].kind, "empty_result");
  }
}

TEST_F(CtcEngine, OneBadRecordingStopsNoOther) {
  std::vector<std::string> got;
  transcriber(3)->transcribe_many(
      3,
      [&](std::size_t i) -> Result<std::unique_ptr<AudioSource>> {
        auto audio = std::make_unique<TestAudio>(babble(1));
        if (i == 1) audio->fail_at = 4097;
        if (i == 2) return unexpected(ErrorCode::not_found, "no such file");
        return std::unique_ptr<AudioSource>(std::move(audio));
      },
      {}, {}, [&](std::size_t, Result<Transcript> result) { got.push_back(result ? "text" : result.error().message()); });
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[0], "text");
  EXPECT_THAT(got[1], HasSubstr("NaN at sample 7"));
  EXPECT_THAT(got[2], HasSubstr("no such file"));
}

TEST_F(CtcEngine, AModelThatComputesNanNamesItselfAndFailsTheRecording) {
  use_nan_in("encoder.encoders.1.feed_forward.w_2.weight");
  const auto transcript = run(babble(1));
  ASSERT_FALSE(transcript);
  EXPECT_THAT(transcript.error().message(), HasSubstr("NaN or infinity"));
  const auto all = sessions();
  const auto session = *all->open(16000);
  ASSERT_TRUE(all->accept(session, babble(2)));
  while (all->ready()) all->step();
  const auto events = all->take_events(session);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().kind, StreamEvent::Kind::failed);
  EXPECT_THAT(events.back().text, HasSubstr("NaN or infinity"));
  EXPECT_FALSE(all->accept(session, babble(1)));
}

TEST_F(CtcEngine, ADecoderThatComputesNanFailsTheRecordingThatItRescores) {
  use_nan_in("decoder.left_decoder.decoders.0.feed_forward.w_2.weight");
  TranscribeOptions options;
  options.ctc.decode = "attention_rescoring";
  const auto transcript = run(babble(1), options);
  ASSERT_FALSE(transcript);
  EXPECT_THAT(transcript.error().message(), HasSubstr("NaN or infinity in the decoder"));
  options.ctc.decode = "ctc_prefix_beam_search";
  EXPECT_TRUE(run(babble(1), options));
  const auto all = sessions();
  const auto session = *all->open(16000);
  ASSERT_TRUE(all->accept(session, babble(2)));
  ASSERT_TRUE(all->finish(session));
  while (all->ready()) all->step();
  EXPECT_EQ(all->take_events(session).back().kind, StreamEvent::Kind::failed);
}

// Fails as a GPU does, at the call of a layer.
struct FailingLayer : RunObserver {
  void not_finite(std::string_view, std::int64_t) override {}
  bool wants_times() const override { return true; }
  void layer_time(std::string_view, const LayerCall&) override {
    if (until >= 0 && until-- == 0) throw GpuError("a kernel that fails");
  }
  int until = -1;
};

TEST_F(CtcEngine, LosesOneRequestToAFailureWhereverItIs) {
  FailingLayer failing;
  context.observer = &failing;
  const auto samples = babble(1.3, 240);
  const auto expected = run(samples).value();
  for (int layer = 0, failures = 1; failures > 0; ++layer) {
    failures = 0;
    const auto transcribes = transcriber(1, layer % 2 == 0);
    TestAudio first(samples), second(samples);
    failing.until = layer;
    try {
      std::ignore = transcribes->transcribe(first, {}, {});
    } catch (const GpuError&) {
      ++failures;
    }
    failing.until = -1;
    const auto next = transcribes->transcribe(second, {}, {});
    ASSERT_TRUE(next) << layer << ": " << next.error().message();
    EXPECT_EQ(next->text, expected.text) << layer;
    ASSERT_LT(layer, 1000);
  }
}

TEST_F(CtcEngine, AFailureEndsTheSessionsThatAreOpenAndNoLaterOne) {
  FailingLayer failing;
  context.observer = &failing;
  const auto samples = babble(2, 300);
  const auto expected = told(stream(samples, 1600));
  for (const int layer : {0, 4, 11, 40}) {
    const auto all = sessions();
    const auto session = *all->open(16000);
    ASSERT_TRUE(all->accept(session, samples));
    failing.until = layer;
    EXPECT_THROW(while (all->ready()) all->step(), GpuError) << layer;
    failing.until = -1;
    EXPECT_FALSE(all->ready());
    EXPECT_EQ(all->take_events(session).back().kind, StreamEvent::Kind::failed);
    EXPECT_FALSE(all->accept(session, samples));
    all->close(session);
    const auto next = *all->open(16000);
    ASSERT_TRUE(all->accept(next, samples));
    ASSERT_TRUE(all->finish(next));
    while (all->ready()) all->step();
    EXPECT_EQ(told(all->take_events(next)), expected) << layer;
  }
}

TEST_F(CtcEngine, AUnitTableOfOtherUnitsIsRefused) {
  const auto refusal_of = [&](const std::string& from, const std::string& to, const std::string& yaml = {}) {
    Checkpoint checkpoint = models::conformer::random_checkpoint(models::conformer::small_train_yaml());
    std::string& units = checkpoint.tokenizer.units_txt;
    if (!from.empty()) units.replace(units.find(from), from.size(), to);
    if (!yaml.empty()) checkpoint.documents["train.yaml"].insert(1, yaml + ",");
    const auto loaded = models::conformer::Model::load(checkpoint, {}, context);
    return loaded ? std::string("accepted") : loaded.error().message();
  };
  EXPECT_EQ(refusal_of("", ""), "accepted");
  EXPECT_THAT(refusal_of("C 4\n", ""), HasSubstr("no unit of id 4"));
  EXPECT_THAT(refusal_of("U 22\n<sos/eos> 23", "U 22"), HasSubstr("23 units, the model gives 24"));
  EXPECT_THAT(refusal_of("", "", R"("ctc_conf": {"ctc_blank_id": 5})"), HasSubstr("<blank> is unit 0, and train.yaml says 5"));
  EXPECT_THAT(refusal_of("", "", R"("tokenizer_conf": {"special_tokens": {"<sos>": 7, "<eos>": 7}})"),
              HasSubstr("<sos/eos> is unit 23, and train.yaml says 7"));
}

TEST(UtteranceSource, TakesAMinuteWhole) {
  TestAudio audio(babble(59.9));
  UtteranceSource source(audio, 16000, {});
  const auto utterance = source.next().value();
  ASSERT_TRUE(utterance);
  EXPECT_EQ(utterance->samples.size(), 958'400u);
  EXPECT_FALSE(source.was_cut());
  EXPECT_FALSE(source.next().value());
}

TEST(UtteranceSource, CutsWhatIsLongerAndSaysSoAtAnotherRate) {
  TestAudio audio(babble(61));
  UtteranceSource source(audio, 16000, {});
  std::int64_t last = 0;
  while (const auto utterance = source.next().value()) {
    EXPECT_LE(utterance->samples.size(), static_cast<std::size_t>(kLongestPiece * 16000) + 2 * 16000);
    EXPECT_GE(utterance->begin, last);
    last = utterance->begin + static_cast<std::int64_t>(utterance->samples.size());
  }
  EXPECT_TRUE(source.was_cut());
  EXPECT_EQ(source.samples(), 61 * 16000);
  TestAudio slow(babble(200));
  UtteranceSource other(slow, 8000, {});
  EXPECT_THAT(other.next().error().message(), HasSubstr("8000 Hz"));
}

TEST_F(CtcEngine, AStreamGivesTheSameEventsHoweverItsAudioComes) {
  const auto samples = joined(babble(3, 250), joined(std::vector<float>(16000, 0.0f), babble(2.3, 400)));
  const StreamingOptions streaming{.endpoints = {{true, 0.3, 0}, {false, 0, 1.9}}};
  const std::string whole = told(stream(samples, samples.size(), streaming));
  EXPECT_NE(whole, "");
  for (const std::size_t piece : {1u, 7u, 400u, 16000u}) {
    EXPECT_EQ(told(stream(samples, piece, streaming)), whole) << piece;
  }
}

TEST_F(CtcEngine, AStreamsUtterancesEndByTheRules) {
  const auto samples = babble(9);
  const auto events = stream(samples, 3200, {.endpoints = {{false, 0, 2.5}}});
  int finals = 0;
  for (const StreamEvent& event : events) {
    if (event.kind != StreamEvent::Kind::final || event.endpoint.empty()) continue;
    ++finals;
    EXPECT_THAT(event.endpoint, HasSubstr("rule 1"));
  }
  // Chunks of 16 frames are 0.64 s: an utterance is over after 2.56 s.
  EXPECT_EQ(finals, 3);
  EXPECT_EQ(events.back().kind, StreamEvent::Kind::done);
}

TEST_F(CtcEngine, ManySessionsGiveWhatEachGivesAlone) {
  const StreamingOptions streaming{.endpoints = {{true, 0.4, 0}, {false, 0, 3}}};
  constexpr int kSessions = 12;
  std::vector<std::vector<float>> recordings;
  std::vector<std::string> alone;
  for (int i = 0; i < kSessions; ++i) {
    recordings.push_back(babble(0.3 + 0.35 * i, 180 + 40 * i));
    alone.push_back(told(stream(recordings.back(), 1600, streaming)));
  }
  const auto all = sessions(streaming);
  std::vector<StreamingSessions::SessionId> ids(kSessions);
  std::vector<std::size_t> place(kSessions, 0);
  std::vector<std::vector<StreamEvent>> events(kSessions);
  // Session i opens in round i and takes pieces of its own size.
  bool more = true;
  for (int round = 0; more; ++round) {
    more = round < kSessions;
    for (int i = 0; i <= std::min(round, kSessions - 1); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (round == i) ids[at] = *all->open(16000);
      if (place[at] > recordings[at].size()) continue;
      const std::size_t piece = 500 + 700 * at, left = recordings[at].size() - place[at];
      if (left == 0) {
        EXPECT_TRUE(all->finish(ids[at]));
        place[at] = recordings[at].size() + 1;
      } else {
        EXPECT_TRUE(all->accept(ids[at], std::span(recordings[at]).subspan(place[at], std::min(piece, left))));
        place[at] += std::min(piece, left);
      }
      more = true;
    }
    while (all->ready()) all->step();
    for (int i = 0; i <= std::min(round, kSessions - 1); ++i) {
      auto told_now = all->take_events(ids[static_cast<std::size_t>(i)]);
      std::ranges::move(told_now, std::back_inserter(events[static_cast<std::size_t>(i)]));
    }
  }
  for (int i = 0; i < kSessions; ++i) EXPECT_EQ(told(events[static_cast<std::size_t>(i)]), alone[static_cast<std::size_t>(i)]) << i;
}

TEST_F(CtcEngine, ResamplesAStream) {
  const auto samples = babble(2);
  std::vector<float> doubled;  // 32 kHz: each sample twice
  for (const float sample : samples) doubled.insert(doubled.end(), 2, sample);
  const auto whole = told(stream(doubled, doubled.size(), {}, 32000));
  EXPECT_EQ(told(stream(doubled, 333, {}, 32000)), whole);
}

TEST_F(CtcEngine, ASessionRefusesWhatComesAfterItsEnd) {
  const auto all = sessions();
  const auto session = *all->open(16000);
  const std::vector<float> samples(1600, 0.0f), broken = {0.0f, std::nanf("")};
  EXPECT_THAT(all->accept(session, broken).error().message(), HasSubstr("not finite"));
  EXPECT_THAT(all->accept(session, std::vector<float>(1600, -3e38f)).error().message(), HasSubstr("beyond 1e+09"));
  EXPECT_TRUE(all->accept(session, samples));
  EXPECT_TRUE(all->finish(session));
  EXPECT_THAT(all->accept(session, samples).error().message(), HasSubstr("takes no more audio"));
  EXPECT_THAT(all->finish(session).error().message(), HasSubstr("finished before"));
  EXPECT_THAT(all->accept(session + 1, samples).error().message(), HasSubstr("is not open"));
  EXPECT_THAT(all->accept(-1, samples).error().message(), HasSubstr("is not open"));
  while (all->ready()) all->step();
  ASSERT_EQ(all->take_events(session).back().kind, StreamEvent::Kind::done);
  EXPECT_FALSE(all->ready());
  all->close(session);
  all->close(session);
  EXPECT_THAT(all->accept(session, samples).error().message(), HasSubstr("is not open"));
  EXPECT_EQ(*all->open(16000), session) << "a number that is free again";
}

TEST_F(CtcEngine, AStreamRefusesModesThatNeedTheWhole) {
  const auto refusal_of = [&](void (*change)(TranscribeOptions&)) {
    TranscribeOptions options;
    change(options);
    const auto made = StreamingSessions::create(model, options, {}, context);
    return made ? std::string("accepted") : made.error().message();
  };
  EXPECT_THAT(refusal_of([](auto& o) { o.ctc.decode = "attention"; }), HasSubstr("needs the whole utterance"));
  EXPECT_THAT(refusal_of([](auto& o) { o.vad.enabled = true; }), HasSubstr("endpoint rules"));
  EXPECT_THAT(refusal_of([](auto& o) { o.n_best = 2; }), HasSubstr("one text"));
  use(models::conformer::small_train_yaml(R"("causal": false)"));
  EXPECT_THAT(refusal_of([](auto&) {}), HasSubstr("causal is false"));
}

}  // namespace
}  // namespace oasr::engine
