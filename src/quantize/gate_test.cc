// Two small random models listen to a few tones.
#include "quantize/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "audio/wav_bytes.h"
#include "load/convert.h"
#include "models/conformer/test_support.h"
#include "models/whisper/test_support.h"
#include "oasr/recognizer.h"
#include "oasr/streaming.h"
#include "testing/test_files.h"

namespace oasr::quantize {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct GateTest : ::testing::Test {
  testing::TestFiles files;
  GateOptions options;

  GateTest() {
    std::string manifest;
    for (int i = 0; i < 3; ++i) {
      const std::string name = "a" + std::to_string(i) + ".wav";
      std::vector<std::int16_t> samples;
      for (const float value :
           testing::tone(200 + 300 * i, 16000, 12000 + 4000 * static_cast<std::size_t>(i))) {
        samples.push_back(static_cast<std::int16_t>(value * 20000));
      }
      files.write(name, testing::wav({}, testing::int16_bytes(samples)));
      manifest += R"({"id": "a)" + std::to_string(i) + R"(", "audio": ")" + name +
                  R"(", "text": "what was said"})"
                  "\n";
    }
    options.manifest = files.write("test.jsonl", manifest);
    options.resamples = 100;
    options.engine.threads = 2;
  }

  std::string save(Checkpoint checkpoint, const std::string& name) {
    ThreadPool pool{2};
    const auto loaded =
        load::load_checkpoint(std::move(checkpoint), {}, {.pool = &pool, .isa = detected_isa()}).value();
    load::save_native(loaded, files.path(name)).value();
    return files.path(name);
  }
  std::string conformer(const std::string& encoder = {}) {
    return save(models::conformer::random_checkpoint(models::conformer::small_train_yaml(encoder)),
                "conformer");
  }
  Error refused(const std::vector<std::string>& calibration_audio = {}) {
    const auto inputs = read_gate_inputs(options, calibration_audio);
    EXPECT_FALSE(inputs);
    return inputs ? Error{} : inputs.error();
  }
};

TEST_F(GateTest, HearsWhatTheFacadeHears) {
  const std::string model = conformer();
  const EvalInputs inputs = read_gate_inputs(options, {}).value();
  std::vector<std::string> told;
  const auto sides =
      decode_side("full precision", model, inputs, options,
                  {.progress =
                       [&](const std::string& stage, std::int64_t done, std::int64_t total) {
                         told.push_back(stage + " " + std::to_string(done) + "/" + std::to_string(total));
                       },
                   .cancelled = {}})
          .value();
  EXPECT_THAT(told, ElementsAre("full precision, streaming 1/3", "full precision, streaming 2/3",
                                "full precision, streaming 3/3", "full precision, offline 1/3",
                                "full precision, offline 2/3", "full precision, offline 3/3"));
  ASSERT_EQ(sides.size(), 2u);
  EXPECT_EQ(sides[0].mode, "offline");
  EXPECT_EQ(sides[1].mode, "streaming");
  EXPECT_EQ(sides[1].report.subject, "full precision, streaming");
  EngineConfig config;
  config.model = model;
  auto recognizer = Recognizer::load(config).value();
  auto streaming = StreamingRecognizer::load(config, {}).value();
  std::size_t letters = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    AudioInput audio;
    audio.path = inputs.rows[i].utterance.audio;
    const Transcript transcript = recognizer.transcribe(audio, {}).value();
    EXPECT_EQ(sides[0].report.utterances[i].hypothesis, transcript.text);
    EXPECT_EQ(sides[0].report.utterances[i].seconds, transcript.duration);
    std::string text;
    streaming
        .transcribe(audio,
                    [&](const StreamEvent& event) {
                      if (event.kind == StreamEvent::Kind::final) text += event.text;
                    })
        .value();
    EXPECT_EQ(sides[1].report.utterances[i].hypothesis, text);
    EXPECT_EQ(sides[1].report.utterances[i].seconds, transcript.duration);
    letters += text.size();
  }
  EXPECT_GT(letters, 0u);
  EXPECT_TRUE(judge(options, sides, sides).value().passed);
}

TEST_F(GateTest, StreamsAreJudgedWhereThereAreAny) {
  const EvalInputs inputs = read_gate_inputs(options, {}).value();
  const auto modes = [&](const std::string& model) {
    return decode_side("full", model, inputs, options).value().size();
  };
  const std::string causal = conformer();
  EXPECT_EQ(modes(causal), 2u);
  EXPECT_EQ(modes(save(models::conformer::random_checkpoint(
                           models::conformer::small_train_yaml(R"("causal": false)")),
                       "looks ahead")),
            1u);
  options.streaming = false;
  EXPECT_EQ(modes(causal), 1u);
}

TEST_F(GateTest, AModelInMemoryIsSharedAndHearsTheSame) {
  const std::string model = conformer();
  const EvalInputs inputs = read_gate_inputs(options, {}).value();
  ThreadPool pool{2};
  const auto loaded = load::load_model(model, {}, {.pool = &pool, .isa = detected_isa()}).value();
  const auto read = decode_side("full", model, inputs, options).value();
  const long uses = loaded.model.use_count();
  const auto shared = decode_side("full", files.path("not read"), inputs, options, {}, &loaded).value();
  EXPECT_EQ(loaded.model.use_count(), uses);
  ASSERT_EQ(shared.size(), read.size());
  for (std::size_t mode = 0; mode < read.size(); ++mode) {
    EXPECT_EQ(shared[mode].mode, read[mode].mode);
    EXPECT_EQ(eval_json(shared[mode].report), eval_json(read[mode].report));
  }
}

TEST_F(GateTest, WhisperIsHeardOffline) {
  auto config = models::whisper::small_config();
  config.max_source_positions = 1500;
  config.vocab_size = 1600;
  const std::string model = save(models::whisper::RandomCheckpoint(config).checkpoint, "whisper");
  const EvalInputs inputs = read_gate_inputs(options, {}).value();
  options.decode.temperatures = {0};
  options.decode.max_new_tokens = 8;
  const auto sides = decode_side("full", model, inputs, options).value();
  ASSERT_EQ(sides.size(), 1u);
  EXPECT_EQ(sides[0].mode, "offline");
}

TEST_F(GateTest, AnUtteranceThatFailsIsCounted) {
  const std::string model = conformer();
  const EvalInputs inputs = read_gate_inputs(options, {}).value();
  files.write("a1.wav", "no audio");
  const auto sides = decode_side("full", model, inputs, options).value();
  for (const GateSide& side : sides) {
    EXPECT_EQ(symptoms_of(side.report).failed, 1) << side.mode;
    EXPECT_NE(side.report.utterances[1].failure, "") << side.mode;
    EXPECT_EQ(side.report.utterances[2].failure, "") << side.mode;
  }
}

TEST_F(GateTest, CancellingStopsIt) {
  const std::string model = conformer();
  const EvalInputs inputs = read_gate_inputs(options, {}).value();
  for (const std::int64_t after : {0, 1, 3, 4}) {  // of 3 streams and 3 recordings
    std::int64_t told = 0;
    const auto sides =
        decode_side("full", model, inputs, options,
                    {.progress = [&](const std::string&, std::int64_t, std::int64_t) { ++told; },
                     .cancelled = [&] { return told >= after; }});
    ASSERT_FALSE(sides);
    EXPECT_EQ(sides.error().code, ErrorCode::cancelled);
    EXPECT_EQ(told, after);
  }
}

TEST_F(GateTest, OptionsThatTheModelHasNotAreAnErrorNotAFailedUtterance) {
  const std::string model = conformer();
  const EvalInputs inputs = read_gate_inputs(options, {}).value();
  options.decode.beam_size = 65;
  EXPECT_EQ(decode_side("full", model, inputs, options).error().code, ErrorCode::invalid_argument);
  options.streaming = false;
  EXPECT_EQ(decode_side("full", model, inputs, options).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(decode_side("full", files.path("none"), inputs, options).error().code, ErrorCode::not_found);
}

TEST_F(GateTest, RecordingsOfTheCalibrationAreRefused) {
  EXPECT_TRUE(read_gate_inputs(options, std::vector<std::string>{files.write("other.wav", "")}));
  const Error error = refused({files.path("other.wav"), files.path("./a1.wav")});
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  EXPECT_THAT(error.message(), HasSubstr("1 of 3 recordings were calibrated on: 'a1'"));
  std::filesystem::create_symlink(files.path("a2.wav"), files.path("link.wav"));
  std::filesystem::create_hard_link(files.path("a2.wav"), files.path("hard.wav"));
  std::filesystem::copy_file(files.path("a2.wav"), files.path("copy.wav"));
  for (const char* name : {"link.wav", "hard.wav", "copy.wav"}) {
    EXPECT_THAT(refused({files.path(name)}).message(), HasSubstr("'a2'")) << name;
  }
  // Of the same length, but not the same recording.
  std::string changed = files.read("a2.wav");
  changed.back() ^= 1;
  EXPECT_TRUE(read_gate_inputs(options, std::vector<std::string>{files.write("changed.wav", changed)}));
}

TEST_F(GateTest, BadInputIsRefused) {
  options.max_wer_increase = -1;
  EXPECT_EQ(refused().where, "max_wer_increase");
  options.max_wer_increase = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(refused().where, "max_wer_increase");
  options.max_wer_increase = 0.1;
  options.normalizer = "german";
  EXPECT_EQ(refused().code, ErrorCode::invalid_argument);
  options.normalizer = "basic";
  options.resamples = 0;
  EXPECT_EQ(refused().where, "resamples");
  options.resamples = 100;
  options.manifest = files.path("none.jsonl");
  EXPECT_EQ(refused().code, ErrorCode::not_found);
  options.manifest = files.write("empty.jsonl", "");
  EXPECT_EQ(refused().what, "holds no utterance");
  options.manifest = files.write("missing.jsonl", R"({"audio": "none.wav", "text": "a"})");
  EXPECT_EQ(refused().code, ErrorCode::not_found);
}

TEST_F(GateTest, SilenceIsJudgedToo) {
  options.manifest = files.write("silent.jsonl", R"({"audio": "a1.wav", "text": " "})");
  EXPECT_EQ(read_gate_inputs(options, {}).value().rows.size(), 1u);
}

}  // namespace
}  // namespace oasr::quantize
