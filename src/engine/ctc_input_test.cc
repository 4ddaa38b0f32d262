// What the engine makes of odd recordings, options and calls with a CTC model: a small U2++ of random numbers.
#include <gmock/gmock.h>

#include <fstream>

#include "engine/engine_fixture.h"
#include "engine/streaming.h"
#include "load/load.h"
#include "testing/paths.h"

namespace oasr::engine {
namespace {

using ::testing::HasSubstr;

constexpr const char* kModes[] = {"ctc_greedy_search", "ctc_prefix_beam_search", "attention_rescoring", "attention",
                                  "joint"};
// Samples of the first encoder frame: a window of 25 ms and right_context() shifts of 10 ms.
constexpr std::size_t kOneFrame = 400 + 6 * 160;

struct CtcInput : ::testing::Test {
  void SetUp() override { use("batch_norm_causal"); }
  void use(const char* variant) {
    auto loaded = load::load_model(testing::test_data(std::filesystem::path("wenet") / variant), {}, context);
    CHECK(loaded.has_value(), loaded ? "" : loaded.error().message());
    model = std::dynamic_pointer_cast<const models::CtcModel>(loaded->model);
    transcriber = *Transcriber::create(model, context, 4);
  }
  Result<Transcript> run(std::vector<float> samples, const TranscribeOptions& options = {}) {
    TestAudio audio(std::move(samples));
    return transcriber->transcribe(audio, options);
  }
  std::string refusal(const TranscribeOptions& options) {
    const auto transcript = run(babble(1), options);
    if (transcript) return "accepted";
    EXPECT_EQ(transcript.error().code, ErrorCode::invalid_argument);
    return transcript.error().message();
  }
  std::unique_ptr<StreamingSessions> sessions(const TranscribeOptions& options = {}) {
    return std::move(StreamingSessions::create(model, options, {.endpoints = {}}, context).value());
  }
  // All events of a stream that gets `samples` in pieces.
  std::vector<StreamEvent> stream(StreamingSessions& streams, const std::vector<float>& samples, std::size_t piece,
                                  int rate = 16000) {
    const auto session = streams.open(rate).value();
    for (std::size_t at = 0; at < samples.size(); at += piece) {
      EXPECT_TRUE(streams.accept(session, std::span(samples).subspan(at, std::min(piece, samples.size() - at))));
      while (streams.ready()) streams.step();
    }
    EXPECT_TRUE(streams.finish(session));
    while (streams.ready()) streams.step();
    auto events = streams.take_events(session);
    streams.close(session);
    return events;
  }

  ThreadPool pool{2};
  ExecContext context{.pool = &pool, .isa = detected_isa()};
  std::shared_ptr<const models::CtcModel> model;
  std::unique_ptr<Transcriber> transcriber;
};

TEST_F(CtcInput, LessThanAnEncoderFrameIsNoTextAndSaidSo) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{399}, kOneFrame - 1}) {
    for (const char* mode : kModes) {
      TranscribeOptions options;
      options.ctc.decode = mode;
      const auto transcript = run(std::vector<float>(size, 0.1f), options);
      ASSERT_TRUE(transcript) << size << " " << mode << ": " << transcript.error().message();
      EXPECT_EQ(transcript->text, "");
      EXPECT_TRUE(transcript->segments.empty());
      EXPECT_DOUBLE_EQ(transcript->duration, static_cast<double>(size) / 16000);
      EXPECT_TRUE(std::ranges::any_of(transcript->warnings, [](const auto& w) { return w.kind == "empty_result"; }));
    }
    auto streams = sessions();
    const auto events = stream(*streams, std::vector<float>(size, 0.1f), 100);
    ASSERT_EQ(events.size(), 1u) << size;
    EXPECT_EQ(events[0].kind, StreamEvent::Kind::done);
    EXPECT_EQ(events[0].utterance, 0);
  }
}

TEST_F(CtcInput, OneEncoderFrameIsDecodedInEveryMode) {
  auto samples = babble(1);
  samples.resize(kOneFrame);
  for (const char* mode : kModes) {
    TranscribeOptions options;
    options.ctc.decode = mode;
    const auto transcript = run(samples, options);
    ASSERT_TRUE(transcript) << mode << ": " << transcript.error().message();
    std::size_t tokens = 0;
    for (const Segment& segment : transcript->segments) {
      tokens += segment.tokens.size();
      EXPECT_GE(segment.start, 0);
      EXPECT_LE(segment.end, transcript->duration + 1e-9);
    }
    EXPECT_LE(tokens, 1u) << mode;  // a frame has room for one
  }
  auto streams = sessions();
  const auto events = stream(*streams, samples, 1);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().kind, StreamEvent::Kind::done);
}

TEST_F(CtcInput, AShortRecordingAmongOthersChangesNothing) {
  const std::vector<std::vector<float>> inputs = {babble(1.3), {}, std::vector<float>(100, 0.1f), babble(0.4, 500),
                                                  std::vector<float>(kOneFrame, 0.2f)};
  const auto open = [&](std::size_t i) -> Result<std::unique_ptr<AudioSource>> {
    return std::unique_ptr<AudioSource>(std::make_unique<TestAudio>(inputs[i]));
  };
  std::size_t told = 0;
  transcriber->transcribe_many(inputs.size(), open, {}, {}, [&](std::size_t i, Result<Transcript> together) {
    ASSERT_TRUE(together) << together.error().message();
    const auto alone = run(inputs[i]);
    EXPECT_EQ(together->text, alone->text);
    ASSERT_EQ(together->segments.size(), alone->segments.size());
    for (std::size_t k = 0; k < alone->segments.size(); ++k) {
      EXPECT_EQ(together->segments[k].avg_logprob, alone->segments[k].avg_logprob);
    }
    ++told;
  });
  EXPECT_EQ(told, inputs.size());
}

TEST_F(CtcInput, AStreamOfAnotherRateIsResampled) {
  auto streams = sessions();
  std::vector<float> fast(44100);
  for (std::size_t i = 0; i < fast.size(); ++i) {
    fast[i] = static_cast<float>(0.3 * std::sin(2 * std::numbers::pi * 300 * static_cast<double>(i) / 44100));
  }
  const auto once = stream(*streams, fast, fast.size(), 44100), pieces = stream(*streams, fast, 441, 44100);
  ASSERT_FALSE(once.empty());
  EXPECT_NEAR(once.back().time, 1.0, 0.15);  // chunks of 16 frames of 40 ms and the context at the end
  ASSERT_EQ(once.size(), pieces.size());
  for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(once[i].text, pieces[i].text);
  for (const int rate : {0, -1}) EXPECT_FALSE(streams->open(rate)) << rate;
}

TEST_F(CtcInput, AStreamTakesNothingAfterItsEnd) {
  auto streams = sessions();
  const auto session = streams->open(16000).value();
  const auto samples = babble(0.5);
  ASSERT_TRUE(streams->accept(session, samples));
  ASSERT_TRUE(streams->finish(session));
  const auto refused = [](const Status& status, const char* what, ErrorCode code = ErrorCode::invalid_argument) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, code);
    EXPECT_THAT(status.error().message(), HasSubstr(what));
  };
  refused(streams->accept(session, samples), "was finished");
  refused(streams->finish(session), "was finished before");
  while (streams->ready()) streams->step();
  EXPECT_EQ(streams->take_events(session).back().kind, StreamEvent::Kind::done);
  refused(streams->accept(session, samples), "was finished");
  streams->close(session);
  streams->close(session);
  for (const int id : {session, -1, 99}) {
    refused(streams->accept(id, samples), "is not open");
    refused(streams->finish(id), "is not open");
    EXPECT_TRUE(streams->take_events(id).empty());
    EXPECT_EQ(streams->memory(id).caches, 0u);
  }
  EXPECT_FALSE(streams->ready());
  streams->step();
  const auto again = streams->open(16000).value();
  refused(streams->accept(again, std::vector<float>{0.1f, std::nanf("")}), "not finite", ErrorCode::bad_audio);
  EXPECT_TRUE(streams->accept(again, samples));
}

TEST_F(CtcInput, RefusesOptionsThatItHasNotByName) {
  const auto with = [](auto&& set) {
    TranscribeOptions options;
    set(options);
    return options;
  };
  EXPECT_THAT(refusal(with([](auto& o) { o.initial_prompt = "x"; })), HasSubstr("initial_prompt: is an option"));
  EXPECT_THAT(refusal(with([](auto& o) { o.task = "translate"; })), HasSubstr("task: is an option of Whisper's family"));
  EXPECT_THAT(refusal(with([](auto& o) { o.temperatures = {0.5}; })), HasSubstr("temperatures: is an option"));
  EXPECT_THAT(refusal(with([](auto& o) { o.ctc.num_left_chunks = 2; })), HasSubstr("num_left_chunks: needs a"));
  EXPECT_THAT(refusal(with([](auto& o) { o.ctc.chunk_size = -1; })), HasSubstr("chunk_size"));
  EXPECT_THAT(refusal(with([](auto& o) { o.ctc.decode = "beam"; })), HasSubstr("'beam' is no decode mode"));
  EXPECT_THAT(refusal(with([](auto& o) { o.ctc.reverse_weight = 1.5; })), HasSubstr("reverse_weight"));
  EXPECT_THAT(refusal(with([](auto& o) { o.ctc.hotwords = {{"", 3}}; })), HasSubstr("hotwords: a phrase is empty"));
  EXPECT_THAT(refusal(with([](auto& o) { o.ctc.hotwords = {{"  ", 3}}; })), HasSubstr("is blank"));
  EXPECT_THAT(refusal(with([](auto& o) { o.ctc.hotwords = {{"abc", 3}, {"ab漢", 3}}; })),
              HasSubstr("phrase 2, 'ab漢', has characters that the model can not write"));
  EXPECT_THAT(refusal(with([](auto& o) { o.ctc.hotwords = {{"abc", 3}, {"ab漢", 3}}; })), HasSubstr("hotwords"));
  use("old_config");
  EXPECT_THAT(refusal(with([](auto& o) { o.ctc.chunk_size = 4; })), HasSubstr("can not be cut into chunks"));
  EXPECT_THAT(refusal(with([](auto& o) { o.ctc.reverse_weight = 0.3; })), HasSubstr("no right-to-left decoder"));
  const auto streams = StreamingSessions::create(model, {}, {}, context);
  ASSERT_FALSE(streams);
  EXPECT_EQ(streams.error().code, ErrorCode::unsupported);
  EXPECT_THAT(streams.error().message(), HasSubstr("its convolutions look ahead"));
}

TEST_F(CtcInput, ABeamWiderThanTheVocabularyIsTheVocabulary) {
  for (const char* mode : {"ctc_prefix_beam_search", "attention_rescoring", "attention", "joint"}) {
    TranscribeOptions options;
    options.ctc.decode = mode;
    options.beam_size = 64;  // of 20 units
    const auto transcript = run(babble(0.6), options);
    EXPECT_TRUE(transcript) << mode << ": " << transcript.error().message();
  }
}

}  // namespace
}  // namespace oasr::engine
