// The whole of `oasr quantize` on a small random model, from files to files.
#include "oasr/quantize.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cmath>
#include <fstream>

#include "audio/wav_bytes.h"
#include "base/fs.h"
#include "base/json.h"
#include "load/convert.h"
#include "load/load.h"
#include "models/conformer/test_support.h"
#include "oasr/recognizer.h"
#include "quantize/workbench.h"
#include "testing/test_files.h"

namespace oasr {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string wav(int seed, double seconds, int rate = 16000, double level = 0.3) {
  std::vector<std::int16_t> samples;
  std::uint32_t random = static_cast<std::uint32_t>(seed) * 7919u + 1;
  for (int i = 0; i < static_cast<int>(seconds * rate); ++i) {
    random = random * 1664525u + 1013904223u;
    const double noise = static_cast<double>(random >> 8) * 0x1p-23 - 1.0;
    const double tone = std::sin(2 * 3.14159265 * (200 + 60 * seed) * i / rate);
    samples.push_back(static_cast<std::int16_t>(32767 * level * (0.5 * tone + 0.5 * noise)));
  }
  testing::Format format;
  format.sample_rate = rate;
  return testing::riff(testing::chunk("fmt ", testing::format_body(format)) +
                       testing::chunk("data", testing::int16_bytes(samples)));
}

struct Quantize : ::testing::Test {
  Quantize() {
    for (int i = 0; i < 6; ++i) files.write("r" + std::to_string(i) + ".wav", wav(i, 0.8 + 0.1 * i));
    write_manifest("calib.jsonl", {0, 1, 2, 3});
    write_model(models::conformer::random_checkpoint(models::conformer::small_train_yaml()));
    options.calib_manifest = path("calib.jsonl");
    options.threads = 2;
  }
  void write_model(Checkpoint checkpoint) {
    ThreadPool pool(1);
    const auto loaded =
        load::load_checkpoint(std::move(checkpoint), {}, {.pool = &pool, .isa = detected_isa()}).value();
    load::save_native(loaded, path("model")).value();
  }
  void write_manifest(const std::string& name, const std::vector<int>& recordings,
                      const std::string& text = "A B") {
    std::string lines;
    for (const int i : recordings) {
      lines += R"({"id": "u)" + std::to_string(i) + R"(", "audio": "r)" + std::to_string(i) +
               R"(.wav", "text": ")" + text + "\"}\n";
    }
    files.write(name, lines);
  }
  std::string path(const std::string& name) const { return files.path(name); }
  Result<QuantizeOutcome> run(const std::string& destination = "out") {
    return quantize_model(path("model"), path(destination), options);
  }
  std::string refusal(const std::string& destination = "out") {
    const auto outcome = run(destination);
    return outcome ? "done" : outcome.error().message();
  }
  // Every file of a folder, and its bytes.
  std::map<std::string, std::string> contents(const std::string& folder) const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::directory_iterator(path(folder))) {
      all[entry.path().filename().string()] = files.read(folder + "/" + entry.path().filename().string());
    }
    return all;
  }
  std::vector<std::string> everything() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(files.path("")))
      names.push_back(entry.path().filename().string());
    return names;
  }

  testing::TestFiles files;
  QuantizeOptions options;
};

TEST_F(Quantize, WritesACheckpointThatIsServedWithoutAFlag) {
  for (const char* recipe : {"int8_w8a8_rtn", "smoothquant_w8a8", "smoothquant_w8a8_fused"}) {
    options.recipe = recipe;
    const auto outcome = run(recipe);
    ASSERT_TRUE(outcome) << outcome.error().message();
    EngineConfig engine;
    engine.model = path(recipe);
    auto served = Recognizer::load(engine);
    ASSERT_TRUE(served) << served.error().message();
    const Json info = parse_json(served->quantization_info(), "info").value();
    EXPECT_THAT(served->quantization_summary(false), HasSubstr(recipe));
    const auto with_flag = [&](const char* scheme) {
      engine.quantization = scheme;
      return Recognizer::load(engine).has_value();
    };
    EXPECT_TRUE(with_flag("int8_w8a8"));
    EXPECT_EQ(with_flag("int8_w8a8_static"), std::string(recipe) == "smoothquant_w8a8_fused");
    for (const char* file : {"quantization_report.json", "quantization_report.html"}) {
      EXPECT_TRUE(fs::exists(path(std::string(recipe) + "/" + file))) << recipe << " " << file;
    }
  }
}

TEST_F(Quantize, FewerInputsAreQuantizedApartWhenChainsAreFused) {
  const auto passes = [&](const char* recipe) {
    options.recipe = recipe;
    const Json report = parse_json(run(recipe).value().report_json, "report").value();
    return report.at("quantize_passes").get<int>();
  };
  // 2 encoder blocks: linear_out, two w_2 and two pointwise convolutions each; 2 decoder layers: linear_k, _v, two
  // linear_out and w_2 each. A chain spares the w_2.
  EXPECT_EQ(passes("smoothquant_w8a8"), 2 * 5 + 2 * 5);
  EXPECT_EQ(passes("smoothquant_w8a8_fused"), 2 * 3 + 2 * 4);
}

TEST_F(Quantize, SmoothingChangesNoBitOfFullPrecision) {
  options.recipe = "smoothquant_w8a8";
  const Json report = parse_json(run().value().report_json, "report").value();
  EXPECT_EQ(report.at("proof").at("greatest_difference").get<double>(), 0.0);
  EXPECT_GT(report.at("proof").at("values").get<int>(), 0);
  EXPECT_GT(report.at("divergence").get<double>(), 0.0);
  int folded = 0;
  for (const Json& layer : report.at("layers")) {
    if (!layer.at("smoothing").is_null() && layer.at("smoothing").at("fold") != "runtime") ++folded;
  }
  EXPECT_GT(folded, 4);
}

TEST_F(Quantize, SmoothedKeysAreProvenAndReported) {
  files.write("mine.yaml",
              "name: mine\nscheme: int8_w8a8\nalgorithms: [smoothquant, smoothattention, rtn]\n");
  options.recipe = path("mine.yaml");
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().message();
  const Json report = parse_json(outcome->report_json, "report").value();
  EXPECT_GT(report.at("proof").at("greatest_difference").get<double>(),
            0.0);  // float32 rounds the folded rows
  EXPECT_THAT(outcome->summary, HasSubstr("the keys of 4 attentions are divided by"));
  ASSERT_EQ(report.at("keys").size(), 4u);  // of two decoders of a layer each, themselves and the encoder's
  for (const Json& keys : report.at("keys")) EXPECT_EQ(keys.at("moved").get<int>(), 32) << keys;
}

TEST_F(Quantize, GivesTheSameBytesWhateverTheOrderAndTheThreads) {
  options.recipe = "smoothquant_w8a8_fused";
  ASSERT_TRUE(run("a"));
  write_manifest("calib.jsonl", {3, 1, 0, 2});
  fs::remove(path("a.calibration"));
  options.threads = 1;
  fs::rename(path("a"), path("kept"));
  ASSERT_TRUE(run("a"));
  auto first = contents("kept"), second = contents("a");
  first.erase("quantization_report.html"), second.erase("quantization_report.html");  // has measured times
  EXPECT_EQ(first, second);
}

TEST_F(Quantize, KeepsTheStatisticsForAnotherRecipe) {
  ASSERT_TRUE(run());
  const auto kept = files.read("out.calibration");
  int calibrated = 0;
  options.progress = [&](const std::string& stage, double, double) { calibrated += stage == "calibrating"; };
  options.recipe = "smoothquant_w8a8_fused";
  options.force = true;
  const auto again = run();
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(calibrated, 0);
  EXPECT_EQ(files.read("out.calibration"), kept);
  const auto with_cache = contents("out").at("model.safetensors");
  fs::remove(path("out.calibration"));
  ASSERT_TRUE(run());
  EXPECT_GT(calibrated, 0);
  EXPECT_EQ(contents("out").at("model.safetensors"), with_cache);
  // Other recordings are other statistics.
  write_manifest("calib.jsonl", {0, 1, 4});
  calibrated = 0;
  ASSERT_TRUE(run());
  EXPECT_GT(calibrated, 0);
}

TEST_F(Quantize, ACopyInSixteenBitsIsCalibratedAndNotWritten) {
  options.recipe = "int8_w8a8_rtn";
  ASSERT_TRUE(run("float32"));
  for (const char* dtype : {"bfloat16", "float16"}) {
    options.calib_dtype = dtype;
    const auto outcome = run(dtype);
    ASSERT_TRUE(outcome) << outcome.error().message();
    const auto whole = contents("float32"), copy = contents(dtype);
    EXPECT_EQ(whole.at("model.safetensors"), copy.at("model.safetensors"));
    EXPECT_THAT(copy.at("oasr_config.json"), HasSubstr(std::string("\"calibration.dtype\": \"") + dtype));
    const Json a = parse_json(whole.at("quantization_report.json"), "a").value();
    const Json b = parse_json(copy.at("quantization_report.json"), "b").value();
    EXPECT_EQ(b.at("calib_dtype"), dtype);
    EXPECT_EQ(a.at("bytes_before"), b.at("bytes_before"));
    EXPECT_THAT(outcome->summary, HasSubstr(dtype));
    for (std::size_t i = 0; i < a.at("layers").size(); ++i) {
      EXPECT_EQ(a.at("layers")[i].at("bytes_before"), b.at("layers")[i].at("bytes_before"));
    }
  }
}

TEST_F(Quantize, FoldsAreProvedOnACopyToo) {
  options.recipe = "smoothquant_w8a8";
  for (const char* dtype : {"bfloat16", "float16"}) {
    options.calib_dtype = dtype;
    const Json report = parse_json(run(dtype).value().report_json, "report").value();
    EXPECT_EQ(report.at("proof").at("greatest_difference").get<double>(), 0.0) << dtype;
    EXPECT_GT(report.at("divergence").get<double>(), 0.0);
  }
}

TEST_F(Quantize, StatisticsAreOfOneDtype) {
  int calibrated = 0;
  options.statistics = path("kept");
  options.progress = [&](const std::string& stage, double, double) { calibrated += stage == "calibrating"; };
  ASSERT_TRUE(run("a"));
  const int once = std::exchange(calibrated, 0);
  options.calib_dtype = "bfloat16";
  ASSERT_TRUE(run("b"));
  EXPECT_EQ(calibrated, once);
  ASSERT_TRUE(run("c"));
  EXPECT_EQ(calibrated, once);
}

TEST_F(Quantize, AFileThatIsNoStatisticsStaysAsItIs) {
  ASSERT_TRUE(run());
  const auto good = contents("out");
  files.write("out.calibration", "my own notes");
  options.force = true;
  std::string said;
  options.note = [&](const std::string& line) { said += line + "\n"; };
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_THAT(said, HasSubstr("stays as it is"));
  EXPECT_EQ(files.read("out.calibration"), "my own notes");
  for (const char* file : {"model.safetensors", "oasr_config.json", "quantization_report.json"}) {
    EXPECT_EQ(contents("out").at(file), good.at(file)) << file;
  }
  options.statistics = path("elsewhere");
  ASSERT_TRUE(run());
  EXPECT_TRUE(fs::exists(path("elsewhere")));
}

TEST_F(Quantize, ADryRunWritesNothing) {
  options.dry_run = true;
  const auto before = everything();
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_TRUE(outcome->path.empty());
  EXPECT_THAT(outcome->summary, HasSubstr("nothing was written"));
  EXPECT_THAT(outcome->summary, Not(HasSubstr("0 %")));
  EXPECT_EQ(everything(), before);
}

TEST_F(Quantize, ARunThatIsStoppedLeavesOnlyStatistics) {
  for (const char* at : {"calibrating", "writing"}) {
    bool stop = false;
    options.progress = [&](const std::string& stage, double, double) { stop = stop || stage == at; };
    options.cancelled = [&] { return stop; };
    const auto outcome = run();
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::cancelled) << at;
    for (const std::string& name : everything())
      EXPECT_THAT(name, AnyOf(Not(HasSubstr("out")), "out.calibration")) << at;
  }
}

TEST_F(Quantize, AGateThatIsMetIsStoredAsEvidence) {
  write_manifest("gate.jsonl", {4, 5});
  options.gate_manifest = path("gate.jsonl");
  options.max_wer_increase = 1000;
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_TRUE(outcome->gate_passed);
  EXPECT_THAT(contents("out").at("oasr_config.json"), HasSubstr("gate.verdict"));
}

TEST_F(Quantize, AGateThatHearsCalibrationAudioIsRefused) {
  write_manifest("gate.jsonl", {3, 4});
  options.gate_manifest = path("gate.jsonl");
  EXPECT_THAT(refusal(), HasSubstr("'u3'"));
  EXPECT_FALSE(fs::exists(path("out")));
}

TEST_F(Quantize, AMixOfBitsOfConvolutionsAloneIsRefused) {
  files.write("mine.yaml",
              "name: mine\nscheme: w4a8_g128\nalgorithms: [mixed, rtn]\nmodule_types: [conv2d]\n");
  options.recipe = path("mine.yaml");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("module_types"), HasSubstr("mixed does nothing")));
  options.recipe = "w4a8_g128_rtn";
  options.module_types = {"conv1d", "conv2d"};
  EXPECT_THAT(refusal(), HasSubstr("mixed does nothing"));
}

TEST_F(Quantize, ConvolutionsGetStaticScales) {
  options.module_types = {"linear", "pointwise_conv", "conv2d"};
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().message();
  const Json report = parse_json(outcome->report_json, "report").value();
  for (const Json& layer : report.at("layers")) {
    const bool image = layer.at("path") == "encoder.embed.convs.1";
    if (image) {
      EXPECT_EQ(layer.at("scheme"), "int8_w8a8_static");
    }
  }
  options.recipe = "int8_w8a8_rtn";
  options.calib_manifest.clear();
  EXPECT_THAT(refusal("other"), AllOf(HasSubstr("calib_manifest"), HasSubstr("leave conv1d and conv2d out")));
}

TEST_F(Quantize, AChoiceWithoutLayersIsRefusedBeforeAnythingIsDecoded) {
  options.module_types = {"conv1d"};
  EXPECT_THAT(refusal(), HasSubstr("no layer of kind conv1d"));
  EXPECT_FALSE(fs::exists(path("out.calibration")));
}

TEST_F(Quantize, AKindThatTheModelDoesNotHaveIsNoted) {
  options.module_types = {"linear", "conv1d"};
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_THAT(outcome->summary, HasSubstr("no layer of the model is of kind conv1d"));
  options.module_types = {"all"};
  EXPECT_THAT(run("all").value().summary, Not(HasSubstr("no layer of the model is of kind")));
}

TEST_F(Quantize, RefusesBadInputByName) {
  struct Case {
    const char* expected;
    std::function<void()> change;
  };
  const auto manifest = [&](const std::string& text) {
    files.write("bad.jsonl", text);
    options.calib_manifest = path("bad.jsonl");
  };
  files.write("slow.wav", wav(1, 1.0, 8000));
  files.write("silent.wav", wav(1, 0.0));
  const Case cases[] = {
      {"holds no utterance", [&] { manifest(""); }},
      {"1 of 1 audio files are missing", [&] { manifest(R"({"audio": "none.wav"})"); }},
      {"8000 Hz", [&] { manifest("{\"audio\": \"r1.wav\"}\n{\"audio\": \"slow.wav\"}"); }},
      {"r1.wav is at",
       [&] { manifest("{\"id\": \"a\", \"audio\": \"r1.wav\"}\n{\"id\": \"b\", \"audio\": \"r1.wav\"}"); }},
      {"heard nothing", [&] { manifest(R"({"audio": "silent.wav"})"); }},
      {"alpha", [&] { options.alpha = "1.5"; }},
      {"alpha", [&] { options.alpha = "nan"; }},
      {"given twice", [&] { options.alpha = "0.5", options.options = {"smoothquant.alpha=0.7"}; }},
      {"given twice", [&] { options.options = {"smoothquant.alpha=0.5", "smoothquant.alpha=0.5"}; }},
      {"(use float32, float16 or bfloat16)", [&] { options.calib_dtype = "int8"; }},
      {"calib_dtype", [&] { options.calib_dtype = "auto"; }},
      {"calib_utterances", [&] { options.calib_utterances = 0; }},
      {"smoothquant_w8a8", [&] { options.recipe = "smoothquant_w8a9"; }},
      {"fp8", [&] { options.recipe = "fp8_w8a8_rtn"; }},
      {"static_inputs", [&] { options.options = {"static_inputs.observer=minmax"}; }},
      {"ignore", [&] { options.ignore = {"no.such.layer"}; }},
      {"max_wer_increase", [&] { options.max_wer_increase = -1; }},
      {"gate manifest", [&] { options.budget = "wer=0.1"; }},
      {"language", [&] { options.language = "de"; }},
      {"normalizer", [&] { options.gate_normalizer = "nonsense"; }},
      {"recordings", [&] { options.budget = "bytes=50M", options.recipe = "int8_w8a8_rtn", options.calib_manifest = ""; }},
  };
  const QuantizeOptions good = options;
  for (const Case& bad : cases) {
    options = good;
    bad.change();
    EXPECT_THAT(refusal(), HasSubstr(bad.expected));
    EXPECT_FALSE(fs::exists(path("out")));
  }
}

TEST_F(Quantize, ReplacesOnlyWithForceAndOnlyCheckpoints) {
  ASSERT_TRUE(run());
  EXPECT_THAT(refusal(), HasSubstr("exists already"));
  options.force = true;
  EXPECT_EQ(refusal(), "done");
  EXPECT_THAT(refusal("model"), HasSubstr("is the source"));
  fs::create_directory(path("mine"));
  files.write("mine/photo.jpg", "x");
  EXPECT_THAT(refusal("mine"), HasSubstr("no oasr checkpoint"));
  EXPECT_EQ(files.read("mine/photo.jpg"), "x");
  files.write("out/photo.jpg", "x");
  EXPECT_THAT(refusal(), HasSubstr("holds photo.jpg"));
  EXPECT_EQ(files.read("out/photo.jpg"), "x");
  fs::create_symlink(path("out"), path("link"));
  EXPECT_THAT(refusal("link"), HasSubstr("symbolic link"));
}

TEST_F(Quantize, WhatAppearsAtTheDestinationMeanwhileStays) {
  options.progress = [&](const std::string& stage, double, double) {
    if (stage == "writing" && !fs::exists(path("out"))) files.write("out/thesis", "precious");
  };
  EXPECT_THAT(refusal(), HasSubstr("exists already"));
  EXPECT_EQ(files.read("out/thesis"), "precious");
}

TEST_F(Quantize, APipeIsNoRecording) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  files.write("calib.jsonl", R"({"audio": "pipe"})");
  EXPECT_THAT(refusal(), HasSubstr("no regular file"));
}

TEST_F(Quantize, AGateThatHearsNothingIsRefused) {
  files.write("gate.jsonl", R"({"audio": "silent.wav", "text": "A"})");
  files.write("silent.wav", wav(1, 0.0));
  options.gate_manifest = path("gate.jsonl");
  EXPECT_THAT(refusal(), HasSubstr("hears nothing"));
}

TEST_F(Quantize, TheModelMakesRoomForAnotherAndComesBack) {
  ThreadPool pool(2);
  auto bench = quantize::Workbench::open(path("model"), {}, {.pool = &pool, .isa = detected_isa()}).value();
  const std::weak_ptr<const models::SpeechModel> model = bench.loaded().model;
  const std::string layer = "encoder.encoders.0.feed_forward.w_1";
  const auto before = bench.weights().output_amax(layer);
  EXPECT_TRUE(bench.aside([&]() -> Result<bool> { return model.expired(); }).value());
  EXPECT_EQ(bench.weights().output_amax(layer), before);
  EXPECT_NE(bench.loaded().model->layers().find_linear(layer), nullptr);
}

TEST_F(Quantize, ABudgetThatFullPrecisionMeetsIsRefused) {
  options.budget = "bytes=1G";
  EXPECT_THAT(refusal(), HasSubstr("nothing needs to be quantized"));
}

TEST_F(Quantize, ABudgetThatCanNotBeMetIsReportedAndNothingIsWritten) {
  options.budget = "bytes=1K";
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_FALSE(outcome->gate_passed);
  EXPECT_THAT(outcome->refusal, HasSubstr("no mix of precisions meets the budget"));
  EXPECT_FALSE(fs::exists(path("out")));
  const Json report = parse_json(outcome->report_json, "report").value();
  EXPECT_THAT(report.at("unmet").get<std::string>(), HasSubstr("bytes=1K can not be met; the least is"));
  EXPECT_THAT(outcome->summary, AllOf(HasSubstr("refused"), HasSubstr("bytes=1K")));
}

TEST_F(Quantize, ABudgetOfBytesLeavesTheLayersThatMatterMost) {
  const Json all = parse_json(run("all").value().report_json, "report").value();
  const auto before = all.at("bytes_before").get<std::int64_t>(),
             after = all.at("bytes_after").get<std::int64_t>();
  const auto limit = (before + after) / 2;
  options.budget = "bytes=" + std::to_string(limit);
  const auto outcome = run("some");
  ASSERT_TRUE(outcome) << outcome.error().message();
  const Json some = parse_json(outcome->report_json, "report").value();
  EXPECT_LE(some.at("bytes_after").get<std::int64_t>(), limit);
  EXPECT_GT(some.at("bytes_after").get<std::int64_t>(), after);
}

TEST_F(Quantize, AQuantizedSourceIsRefused) {
  ASSERT_TRUE(run("int8"));
  const auto outcome = quantize_model(path("int8"), path("out"), options);
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message(), HasSubstr("quantized already"));
}

TEST_F(Quantize, NaNInAWeightIsNamed) {
  auto checkpoint = models::conformer::random_checkpoint(models::conformer::small_train_yaml());
  auto& tensor = checkpoint.tensors.tensors.at("encoder.encoders.1.feed_forward.w_1.weight");
  const float bad = std::nanf("");
  std::memcpy(const_cast<std::byte*>(tensor.bytes.data()), &bad, sizeof bad);
  fs::remove_all(path("model"));
  write_model(std::move(checkpoint));
  EXPECT_THAT(refusal(), HasSubstr("encoder.encoders.1.feed_forward.w_"));
  options.recipe = "int8_w8a8_rtn";
  options.calib_manifest.clear();
  EXPECT_THAT(refusal(), HasSubstr("encoder.encoders.1.feed_forward.w_1"));
}

}  // namespace
}  // namespace oasr
