// A model that computes NaN: whose recording ends, and whose goes on.
#include "engine/engine_fixture.h"

namespace oasr::engine {
namespace {

constexpr const char* kMessage = "the model computed NaN or infinity in ";

class Faults : public EngineFixture {
 protected:
  // Recordings whose pitches differ, decoded together.
  std::vector<Result<Transcript>> run_together(const std::vector<std::vector<float>>& inputs,
                                               const TranscribeOptions& options = english()) {
    auto many =
        *Transcriber::create(model, {.pool = &pool, .isa = Isa::scalar}, static_cast<int>(inputs.size()));
    std::vector<Result<Transcript>> results;
    many->transcribe_many(
        inputs.size(),
        [&](std::size_t i) -> Result<std::unique_ptr<AudioSource>> {
          return std::unique_ptr<AudioSource>(std::make_unique<TestAudio>(inputs[i]));
        },
        options, {}, [&](std::size_t, Result<Transcript> t) { results.push_back(std::move(t)); });
    return results;
  }
  static std::vector<std::vector<float>> three() { return {babble(3, 200), babble(3, 300), babble(3, 400)}; }
};

TEST_F(Faults, EndTheRecordingOfTheRowAndNoOther) {
  for (const int victim : {0, 1, 2}) {
    use([&](const FakeStep& step, std::span<float> logits) {
      say({at(0), 0, 1, at(3)})(step, logits);
      if (step.window == victim && step.said.size() == 2) model->faults.push_back({"layer.7", step.id});
    });
    const auto results = run_together(three());
    ASSERT_EQ(results.size(), 3u);
    for (int i = 0; i < 3; ++i) {
      const auto& result = results[static_cast<std::size_t>(i)];
      ASSERT_EQ(result.has_value(), i != victim) << i;
      if (result) {
        EXPECT_EQ(result->text, " a b");
      } else {
        EXPECT_EQ(result.error().code, ErrorCode::bad_checkpoint);
        EXPECT_EQ(result.error().what, std::string(kMessage) + "layer.7");
        EXPECT_NE(result.error().remedy, "");
      }
    }
  }
}

TEST_F(Faults, OfSeveralRowsEndTheRecordingOfEach) {
  use([&](const FakeStep& step, std::span<float> logits) {
    say({at(0), 0, at(3)})(step, logits);
    if (step.window != 1 && step.said.size() == 1) model->faults.push_back({"the output head", step.id});
  });
  const auto results = run_together(three());
  EXPECT_FALSE(results[0]);
  EXPECT_TRUE(results[1]);
  EXPECT_FALSE(results[2]);
}

TEST_F(Faults, WithoutARowEndAllThatAreDecoded) {
  use([&](const FakeStep& step, std::span<float> logits) {
    say({at(0), 0, at(3)})(step, logits);
    if (step.window == 1 && step.said.size() == 1) model->faults.push_back({"layer.7", -1});
  });
  for (const auto& result : run_together(three())) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().what, std::string(kMessage) + "layer.7");
  }
}

TEST_F(Faults, OfTheEncoderEndTheRecordingThatIsEncoded) {
  use(say({at(0), 0, at(3)}));
  model->called = [&](std::string_view call) {
    // The second window of all three together; again when each encodes its own.
    if (call == "encode" && model->encoded % 3 == 2) model->faults.push_back({"the encoder", -1});
  };
  const auto results = run_together(three());
  EXPECT_TRUE(results[0]);
  ASSERT_FALSE(results[1]);
  EXPECT_EQ(results[1].error().what, std::string(kMessage) + "the encoder");
  EXPECT_TRUE(results[2]);
}

TEST_F(Faults, OfWordTimesEndTheRecordingThatIsTimed) {
  auto options = english();
  options.word_timestamps = true;
  use(say({at(0), 0, 27, at(3)}));
  int timed = 0;
  model->called = [&](std::string_view call) {
    if (call == "alignment" && timed++ == 1) model->faults.push_back({"layer.7", -1});
  };
  const auto results = run_together(three(), options);
  EXPECT_TRUE(results[0]);
  ASSERT_FALSE(results[1]);
  EXPECT_EQ(results[1].error().what, std::string(kMessage) + "layer.7");
  EXPECT_TRUE(results[2]);
}

TEST_F(Faults, OfLanguageDetectionEndTheRecording) {
  auto options = english();
  options.language = "auto";
  use([&](const FakeStep& step, std::span<float> logits) {
    say({at(0), 0, at(3)})(step, logits);
    if (step.row.size() == 1) model->faults.push_back({"the output head", step.id});
  });
  const auto result = run(babble(3), options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what, std::string(kMessage) + "the output head");
}

TEST_F(Faults, LeaveTheTranscriberUsable) {
  bool broken = true;
  use([&](const FakeStep& step, std::span<float> logits) {
    say({at(0), 0, at(3)})(step, logits);
    if (broken && step.said.size() == 1) model->faults.push_back({"layer.7", step.id});
  });
  EXPECT_FALSE(run(babble(3)));
  broken = false;
  const auto result = run(babble(3));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->text, " a");
}

}  // namespace
}  // namespace oasr::engine
