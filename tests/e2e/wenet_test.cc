// WeNet models on the command line: odd recordings, options that belong to others, streams, folders that are
// written and described; and one transcript in int8 whatever the processor, the threads and the batch.
#include <cmath>
#include <numbers>

#include "device/cpu.h"
#include "e2e/process.h"
#include "models/whisper/test_support.h"

namespace oasr {
namespace {

constexpr const char* kRefused = "oasr: error: ";

class WenetCommands : public CommandLine {
 protected:
  void SetUp() override {
    model_ = testing::test_data("wenet/batch_norm_causal").string();
    write_wav(at("a.wav"), tone(16000), 16000);
  }
  static std::vector<std::int16_t> tone(std::size_t samples) {
    std::vector<std::int16_t> values(samples);
    for (std::size_t i = 0; i < samples; ++i) {
      const double t = static_cast<double>(i) / 16000;
      values[i] = static_cast<std::int16_t>(9000 * std::sin(2 * std::numbers::pi * (200 + 300 * t) * t));
    }
    return values;
  }
  Words transcribe(const Words& more) const {
    Words words = {"transcribe", "-m", model_};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Outcome run_with(const Words& variables, const Words& words) {
    return Process(words, folder_.path(), {}, "/dev/null", variables).wait();
  }
  std::string whisper() const {
    const std::string folder = at("whisper");
    if (!fs::exists(folder)) {
      models::whisper::write_hugging_face(models::whisper::RandomCheckpoint(models::whisper::small_config()), folder);
    }
    return folder;
  }
  // One line that begins with `begin` and says `text`, and no output.
  void expect_refused(const Words& words, const std::string& begin, const std::string& text, int status = 2) {
    const auto outcome = run(words);
    EXPECT_EQ(outcome.status, status) << words.back() << ": " << outcome.err;
    EXPECT_EQ(outcome.err.rfind(kRefused + begin, 0), 0u) << words.back() << ": " << outcome.err;
    EXPECT_NE(outcome.err.find(text), std::string::npos) << words.back() << ": " << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_TRUE(outcome.out.empty()) << outcome.out;
  }

  std::string model_;
};

TEST_F(WenetCommands, AFolderIsAModelWithAndWithoutASlash) {
  const auto plain = run(transcribe({at("a.wav")}));
  EXPECT_EQ(plain.status, 0) << plain.err;
  EXPECT_FALSE(plain.out.empty());
  model_ += "/";
  EXPECT_EQ(run(transcribe({at("a.wav")})).out, plain.out);
}

TEST_F(WenetCommands, WhispersOptionsAreRefusedByName) {
  const std::string what = "is an option of Whisper's family; this model is a conformer with a CTC head";
  for (const auto& [words, name] :
       {std::pair<Words, const char*>{{"--initial-prompt", "x"}, "initial"}, {{"--task", "translate"}, "task"},
        {{"--translate"}, "task"}, {{"--language", "en"}, "language"}, {{"--no-timestamps"}, "timestamps"},
        {{"--prefix", "x"}, "prefix"}, {{"--offset-t", "100"}, "clip"}}) {
    Words all = transcribe({at("a.wav")});
    all.insert(all.end(), words.begin(), words.end());
    expect_refused(all, "", what);
    EXPECT_NE(run(all).err.find(name), std::string::npos) << name;
  }
}

TEST_F(WenetCommands, CtcOptionsAreRefusedByNameWithWhisper) {
  for (const Words& words :
       {Words{"--decode", "ctc_greedy_search"}, Words{"--chunk-size", "16"}, Words{"--ctc-weight", "0.5"},
        Words{"--reverse-weight", "0.3"}, Words{"--hotword", "abc"}}) {
    Words all = {"transcribe", "-m", whisper(), at("a.wav")};
    all.insert(all.end(), words.begin(), words.end());
    expect_refused(all, "", "is an option of models with a CTC head, and this model has none");
    EXPECT_NE(run(all).err.find(words[0].substr(2, 3)), std::string::npos);
  }
}

TEST_F(WenetCommands, OptionsThatCanNotBeMeantAreRefusedByName) {
  const auto with = [&](const Words& words) {
    Words all = transcribe({at("a.wav")});
    all.insert(all.end(), words.begin(), words.end());
    return all;
  };
  expect_refused(with({"--num-left-chunks", "2"}), "--num-left-chunks: ", "needs a chunk size");
  expect_refused(with({"--chunk-size", "-1"}), "--chunk-size: ", "must be 0");
  expect_refused(with({"--decode", "fast"}), "--decode: ", "'fast' is no decode mode");
  expect_refused(with({"--device", "cpu", "--arithmetic", "float16"}), "--arithmetic: ", "float16 is arithmetic of GPUs");
  expect_refused(with({"--arithmetic", "half"}), "--arithmetic: ", "use float32, float16, bfloat16");
  expect_refused(with({"--hotword", "漢字:2"}), "", "'漢字', has characters that the model can not write");
  expect_refused(with({"--hotwords-file", at("none.txt")}), at("none.txt"), "can not be read", 1);
}

TEST_F(WenetCommands, StreamsAreRefusedWhereTheyMakeNoSense) {
  expect_refused({"transcribe", "-m", whisper(), at("a.wav"), "--streaming"}, "",
                 "whisper decodes whole windows and can not be streamed", 1);
  expect_refused(transcribe({at("a.wav"), at("a.wav"), "--streaming"}), "several inputs: ", "--streaming");
  expect_refused(transcribe({at("a.wav"), "--streaming", "-o", at("out")}), "--output-dir: ", "--streaming");
  expect_refused(transcribe({at("a.wav"), "--streaming", "--output-file", at("out")}), "--output-file: ",
                 "--streaming");
  expect_refused(transcribe({at("a.wav"), "--streaming", "--shard", "1/2"}), "--shard: ", "--streaming");
  expect_refused(transcribe({at("a.wav"), "--streaming", "--manifest", at("m")}), "--manifest: ", "--streaming");
  expect_refused(transcribe({at("a.wav"), "--streaming", "-f", "srt"}), "--output-format: ", "txt or json");
  expect_refused(transcribe({at("a.wav"), "--streaming", "--decode", "attention"}), "", "decode");
  for (const Words& words : {Words{"--rule1-min-trailing-silence", "1"}, Words{"--rule2-min-trailing-silence", "1"},
                             Words{"--rule3-min-utterance-length", "1"}, Words{"--no-endpoints"},
                             Words{"--no-partial-results"}}) {
    Words all = transcribe({at("a.wav")});
    all.insert(all.end(), words.begin(), words.end());
    expect_refused(all, words[0] + ": ", "is an option of a stream");
  }
  model_ = testing::test_data("wenet/old_config").string();
  expect_refused(transcribe({at("a.wav"), "--streaming"}), "", "its convolutions look ahead", 1);
  EXPECT_FALSE(fs::exists(at("out")));
}

TEST_F(WenetCommands, AStreamPrintsEventsAndItsLeftChunksNeedNoChunkSize) {
  const auto outcome = run(transcribe({at("a.wav"), "--streaming", "--num-left-chunks", "1"}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    ASSERT_TRUE(Json::parse(line, nullptr, false).is_object()) << line;
    last = line;
  }
  EXPECT_EQ(Json::parse(last)["type"], "done");
  EXPECT_EQ(run(transcribe({at("a.wav"), "--streaming", "--num-left-chunks", "1", "--chunk-size", "16"})).out,
            outcome.out);
}

TEST_F(WenetCommands, TooShortAudioIsNoTextAndStatusSix) {
  for (const std::size_t size : {0u, 100u, 399u, 1359u}) {
    write_wav(at("short.wav"), tone(size), size);
    for (const char* streaming : {"--no-streaming", "--streaming"}) {
      const auto outcome = run(transcribe({at("short.wav"), streaming, "-f", "txt"}));
      EXPECT_EQ(outcome.status, 6) << size << streaming << outcome.err;
      EXPECT_NE(outcome.err.find("the recording gave no text"), std::string::npos) << outcome.err;
      EXPECT_TRUE(outcome.out.empty()) << outcome.out;
    }
  }
  write_wav(at("short.wav"), tone(1360), 1360);  // one encoder frame
  const auto outcome = run(transcribe({at("short.wav"), "-f", "json"}));
  EXPECT_TRUE(outcome.status == 0 || outcome.status == 6) << outcome.err;
  EXPECT_TRUE(Json::parse(outcome.out, nullptr, false).is_object()) << outcome.out;
}

TEST_F(WenetCommands, StereoOfAnotherRateIsMixedAndResampled) {
  // The tone at 44.1 kHz as raw float, left alone and both.
  std::string mono, stereo;
  for (std::size_t i = 0; i < 44100; ++i) {
    const double t = static_cast<double>(i) / 44100;
    const auto value = static_cast<float>(0.3 * std::sin(2 * std::numbers::pi * (200 + 300 * t) * t));
    const std::string bytes(reinterpret_cast<const char*>(&value), sizeof(value));
    mono += bytes;
    stereo += bytes + bytes;
  }
  std::ofstream(at("mono.raw"), std::ios::binary) << mono;
  std::ofstream(at("stereo.raw"), std::ios::binary) << stereo;
  const auto heard = [&](const std::string& file, const char* channels) {
    const auto outcome = run(transcribe({file, "--raw", "f32le", "--raw-rate", "44100", "--raw-channels", channels}));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out;
  };
  const std::string one = heard(at("mono.raw"), "1");
  EXPECT_FALSE(one.empty());
  EXPECT_EQ(heard(at("stereo.raw"), "2"), one);
}

TEST_F(WenetCommands, AConvertedFolderIsDescribedAndSaysWhatItsSourceSays) {
  const auto source = run(transcribe({at("a.wav")}));
  const auto quantized = run(transcribe({at("a.wav"), "--quantization", "int8_w8a8"}));
  ASSERT_EQ(run({"convert", model_, at("v1")}).status, 0);
  ASSERT_EQ(run({"convert", model_, at("v2"), "--quantization", "int8_w8a8"}).status, 0);
  const auto inspected = [&](const std::string& path) {
    return Json::parse(run({"inspect", path, "--quantization", "--json"}).out, nullptr, false);
  };
  for (const char* name : {"v1", "v2"}) {
    const Json report = inspected(at(name));
    EXPECT_TRUE(report["loads"].get<bool>());
    EXPECT_EQ(report["container"], "native (from wenet)");
    EXPECT_EQ(report["quantization"]["quantized_layers"], std::string(name) == "v1" ? 0 : 36);
  }
  model_ = at("v1");
  EXPECT_EQ(run(transcribe({at("a.wav")})).out, source.out);
  model_ = at("v2");
  EXPECT_EQ(run(transcribe({at("a.wav")})).out, quantized.out);
}

TEST_F(WenetCommands, AFolderThatIsNoneIsRefusedWithARemedy) {
  fs::copy(model_, at("copy"));
  model_ = at("copy");
  const auto refused = [&](const char* text) {
    expect_refused(transcribe({at("a.wav")}), at("copy"), text, 1);
  };
  fs::rename(at("copy/final.pt"), at("kept.pt"));
  std::ofstream(at("copy/final.zip")) << "PK\3\4";
  refused("copy the final.pt that it was exported from");
  fs::rename(at("kept.pt"), at("copy/final.pt"));
  std::ofstream(at("copy/units.txt")) << "<blank> 0\n<unk> 1\na 2\n<sos/eos> 3\n";
  refused("take the units.txt of the same training");
  std::ofstream(at("copy/train.yaml")) << "encoder: conformer\n";
  refused("has no encoder_conf");
}

// With the trained model and a few clips of AN4.
class RealWenet : public WenetCommands {
 protected:
  void SetUp() override {
    const auto data = testing::full_data();
    if (!data || !fs::exists(*data / "models/u2pp_en")) GTEST_SKIP() << "models/u2pp_en is not here (OASR_TEST_DATA)";
    model_ = (*data / "models/u2pp_en").string();
    for (const auto& entry : fs::directory_iterator(*data / "data/an4/audio/test")) {
      clips_.push_back(entry.path().string());
    }
    std::ranges::sort(clips_);
    clips_.resize(5);
  }
  // The JSON objects of a run by their audio; one over many lines for a single input.
  std::vector<std::string> lines(const Words& variables, const Words& clips, const Words& more = {}) {
    Words words = transcribe({"-f", "json", "--quantization", "int8_w8a8"});
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), clips.begin(), clips.end());
    const auto outcome = run_with(variables, words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    if (clips.size() == 1) return {Json::parse(outcome.out).dump()};
    std::istringstream text(outcome.out);
    std::vector<std::string> rows;
    for (std::string line; std::getline(text, line);) rows.push_back(Json::parse(line).dump());
    std::ranges::sort(rows);
    return rows;
  }
  Words clips_;
};

TEST_F(RealWenet, OneInt8TranscriptOnEveryLaneWithAnyThreadsBatchAndOrder) {
  for (const Words& mode : {Words{}, Words{"--chunk-size", "16"}}) {
    const auto expected = lines({}, clips_, mode);
    ASSERT_EQ(expected.size(), clips_.size());
    for (const std::string& row : expected) EXPECT_FALSE(Json::parse(row)["segments"].empty()) << row;
    for (const auto& [isa, name] : isa_names()) {
      if (!isa_supported(isa)) continue;
      const Words some = isa == Isa::scalar ? Words{clips_[0]} : clips_;  // plain loops take seconds a clip
      for (const std::string& row : lines({"OASR_ISA=" + std::string(name)}, some, mode)) {
        EXPECT_TRUE(std::ranges::find(expected, row) != expected.end()) << name << ": " << row;
      }
    }
    for (const char* threads : {"1", "2", "7"}) {
      EXPECT_EQ(lines({std::string("OASR_THREADS=") + threads}, clips_, mode), expected) << threads;
    }
    const Words reversed(clips_.rbegin(), clips_.rend());
    for (const char* size : {"4", "8"}) {
      for (const Words& order : {clips_, reversed}) {
        Words more = mode;
        more.insert(more.end(), {"--batch-size", size});
        EXPECT_EQ(lines({}, order, more), expected) << size;
      }
    }
    EXPECT_EQ(lines({"OASR_QUANT_FUSION=0"}, clips_, mode), expected);
  }
}

}  // namespace
}  // namespace oasr
