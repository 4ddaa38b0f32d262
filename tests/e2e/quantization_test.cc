// int8 on the command line: converting, choosing, refusing, describing; and one transcript whatever the
// processor, the threads and the batch.
#include <algorithm>
#include <map>
#include <random>

#include "audio/audio_source.h"
#include "device/cpu.h"
#include "e2e/process.h"
#include "models/whisper/test_support.h"

namespace oasr {
namespace {

constexpr const char* kRefused = "oasr: error: ";

// With a small checkpoint of random numbers.
class Quantization : public CommandLine {
 protected:
  void SetUp() override {
    source_ = at("source");
    models::whisper::write_hugging_face(models::whisper::RandomCheckpoint(models::whisper::small_config()),
                                        source_);
  }
  Outcome run_with(const Words& variables, const Words& words, const std::string& program = OASR_BINARY) {
    return Process(words, folder_.path(), {}, "/dev/null", variables, program).wait();
  }
  Json inspected(const std::string& path) {
    return Json::parse(run({"inspect", path, "--quantization", "--json"}).out, nullptr, false);
  }
  static Json layer(const Json& report, const std::string& path) {
    for (const auto& row : report["layers"]) {
      if (row["path"] == path) return row;
    }
    return nullptr;
  }
  static std::map<std::string, std::string> files_of(const fs::path& folder) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(folder)) {
      files[entry.path().filename().string()] = contents(entry.path());
    }
    return files;
  }

  // Five parts of the bundled recording, and all of it.
  void make_clips() {
    speech_ = (testing::project_dir() / "assets" / "samples" / "jfk.flac").string();
    const auto audio = open_audio(speech_).value();
    const auto samples = read_all(*audio).value();
    constexpr std::size_t kCuts[] = {0, 52000, 86000, 108000, 131000, 176000};  // between words
    for (std::size_t i = 0; i + 1 < std::size(kCuts); ++i) {
      std::vector<std::int16_t> clip;
      for (std::size_t k = kCuts[i]; k < std::min(kCuts[i + 1], samples.size()); ++k) {
        clip.push_back(static_cast<std::int16_t>(samples[k] * 32767));
      }
      clips_.push_back(at("clip" + std::to_string(i) + ".wav"));
      write_wav(clips_.back(), clip, clip.size());
    }
    clips_.push_back(at("whole.flac"));
    fs::copy_file(speech_, clips_.back());
  }
  // One run of `oasr transcribe --output-dir` over recordings in an order of its own.
  struct Transcription {
    Words variables, options, inputs;
    unsigned order;  // seed of the shuffle
  };
  std::map<std::string, std::string> transcribed(const Transcription& how) {
    Words inputs = how.inputs;
    std::mt19937 engine(how.order);
    std::ranges::shuffle(inputs, engine);
    const std::string out = at("out" + std::to_string(how.order));
    Words words = {"transcribe", "-m", source_, "--no-fallback", "--quantization", "int8_w8a8",
                   "--output-format", "all", "--output-dir", out};
    words.insert(words.end(), how.options.begin(), how.options.end());
    words.insert(words.end(), inputs.begin(), inputs.end());
    const auto outcome = run_with(how.variables, words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return files_of(out);
  }
  // Every lane of this processor, 1, 2 and 16 threads, batches of 1, 4 and 16, links or none: the files of a
  // recording are the same bytes. The scalar lane gets recordings of its own.
  void expect_same_files(const Words& inputs, const Words& scalar_inputs) {
    const auto expected = transcribed({{}, {}, inputs, 1});
    ASSERT_EQ(expected.size(), 6 * inputs.size());  // txt, json, srt, vtt, tsv, lrc
    for (const auto& [name, text] : expected) EXPECT_GT(text.size(), 4u) << name;
    std::vector<Transcription> others;
    const auto add = [&](Words variables, Words options, const Words& recordings) {
      others.push_back({std::move(variables), std::move(options), recordings, static_cast<unsigned>(others.size()) + 2});
    };
    for (const auto& [isa, name] : isa_names()) {
      if (!isa_supported(isa)) continue;
      add({"OASR_ISA=" + std::string(name)}, {"--batch-size", "4"}, isa == Isa::scalar ? scalar_inputs : inputs);
    }
    for (const char* threads : {"1", "2", "16"}) {
      for (const char* batch : {"1", "4", "16"}) add({}, {"--threads", threads, "--batch-size", batch}, inputs);
    }
    add({"OASR_QUANT_FUSION=0"}, {"--batch-size", "4"}, inputs);
    for (const Transcription& how : others) {
      std::string what;
      for (const Words& words : {how.variables, how.options}) {
        for (const std::string& word : words) what += word + " ";
      }
      const auto given = transcribed(how);
      EXPECT_EQ(given.size(), 6 * how.inputs.size()) << what;
      for (const auto& [name, text] : given) {
        ASSERT_TRUE(expected.contains(name)) << what << name;
        EXPECT_TRUE(expected.at(name) == text) << what << name << ":\n" << text << "instead of\n" << expected.at(name);
      }
    }
  }

  std::string source_, speech_;
  Words clips_;
};

TEST_F(Quantization, ConvertWritesAFolderAndPrintsItsPath) {
  const auto outcome = run({"convert", source_, at("v1")});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, at("v1") + "\n");
  EXPECT_NE(outcome.err.find("written       " + at("v1")), std::string::npos) << outcome.err;
  const Json config = Json::parse(contents(at("v1/oasr_config.json")));
  EXPECT_EQ(config["format_version"], 1);
  EXPECT_FALSE(config.contains("quantization"));
  const Json report = inspected(at("v1"));
  EXPECT_TRUE(report["loads"].get<bool>());
  EXPECT_EQ(report["container"], "native (from huggingface)");
  EXPECT_EQ(report["quantization"]["quantized_layers"], 0);
}

TEST_F(Quantization, ConvertQuantizesAndSaysWhatEveryLayerBecame) {
  const auto outcome = run({"convert", source_, at("v2"), "--quantization", "int8_w8a8", "--json", "-q"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(outcome.err.empty()) << outcome.err;
  const Json json = Json::parse(outcome.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << outcome.out;
  EXPECT_EQ(json["schemes"], Json({"int8_w8a8"}));
  EXPECT_EQ(json["quantized_layers"], 22);
  EXPECT_EQ(layer(json, "model.encoder.layers.0.fc1")["storage"], "int8");
  EXPECT_EQ(layer(json, "model.encoder.layers.0.fc1")["input_quantized_by"],
            "model.encoder.layers.0.final_layer_norm");
  EXPECT_TRUE(layer(json, "model.encoder.conv1")["scheme"].is_null());
  const Json config = Json::parse(contents(at("v2/oasr_config.json")));
  EXPECT_EQ(config["format_version"], 2);
  EXPECT_EQ(config["quantization"]["producer"]["recipe"], "int8_w8a8_rtn");
  EXPECT_EQ(inspected(at("v2"))["quantization"]["layers"], json["layers"]);
  EXPECT_LT(2 * fs::file_size(at("v2/model.safetensors")), fs::file_size(at("source/model.safetensors")));
}

TEST_F(Quantization, ConvertReplacesNothing) {
  fs::create_directory(at("empty"));
  EXPECT_EQ(run({"convert", source_, at("empty")}).status, 0);
  const auto before = files_of(at("empty"));
  const auto again = run({"convert", source_, at("empty"), "--quantization", "int8_w8a8"});
  EXPECT_EQ(again.status, 2) << again.err;
  EXPECT_EQ(again.err.rfind(kRefused, 0), 0u) << again.err;
  EXPECT_NE(again.err.find(at("empty")), std::string::npos) << again.err;
  EXPECT_TRUE(files_of(at("empty")) == before);
  std::ofstream(at("file")) << "x";
  EXPECT_EQ(run({"convert", source_, at("file")}).status, 2);
  EXPECT_EQ(contents(at("file")), "x");
}

TEST_F(Quantization, UnderTheNameOasrConvertTheProgramConverts) {
  const std::string program = OASR_BINARY "-convert";  // made with the program
  const auto outcome = run_with({}, {source_, at("by_name"), "--quantization", "int8_w8a8"}, program);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(run({"convert", source_, at("by_command"), "--quantization", "int8_w8a8"}).status, 0);
  EXPECT_TRUE(files_of(at("by_name")) == files_of(at("by_command")));
  EXPECT_EQ(run_with({}, {"--help"}, program).status, 0);
  EXPECT_EQ(run_with({}, {}, program).status, 2);
}

TEST_F(Quantization, OptionsHaveTwoSpellings) {
  const std::vector<Words> spellings = {
      {"--quantization-option", "ignore=*.encoder.layers.0.*,*.fc2", "module_types=linear"},
      {"--quantization-option", "ignore=*.encoder.layers.0.*,*.fc2", "--quantization-option",
       "module_types=linear"},
      {"--quantization-option=module_types=linear", "--quantization-option", "ignore=*.fc2",
       "--quantization-option=ignore=*.encoder.layers.0.*"},
      {"--quantization-option", "module_types=linear", "ignore=*.encoder.layers.0.*", "ignore=*.fc2"}};
  Json expected;
  for (std::size_t i = 0; i < spellings.size(); ++i) {
    Words words = {"convert", "--quantization", "int8_w8a8", "--json"};
    words.insert(words.end(), spellings[i].begin(), spellings[i].end());
    words.insert(words.end(), {source_, at(std::to_string(i))});
    const auto outcome = run(words);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const Json json = Json::parse(outcome.out, nullptr, false);
    EXPECT_TRUE(layer(json, "model.encoder.layers.0.fc1")["scheme"].is_null());
    EXPECT_TRUE(layer(json, "model.decoder.layers.1.fc2")["scheme"].is_null());
    EXPECT_EQ(layer(json, "model.encoder.layers.1.fc1")["scheme"], "int8_w8a8");
    if (expected.is_null()) expected = json["layers"];
    EXPECT_EQ(json["layers"], expected) << i;
  }
}

TEST_F(Quantization, FourBitsGoOutAsQServesTensorsAndComeBack) {
  ASSERT_EQ(run({"convert", source_, at("v2"), "--quantization", "w4a8_chn"}).status, 0);
  const auto exported = run({"convert", "--to", "qserve", at("v2"), at("qserve")});
  ASSERT_EQ(exported.status, 0) << exported.err;
  EXPECT_TRUE(fs::exists(at("qserve/qserve.json")));
  const auto imported = run({"convert", at("qserve"), at("again"), "--w4", "group=channel,zeros=pre_scaled"});
  ASSERT_EQ(imported.status, 0) << imported.err;
  EXPECT_TRUE(files_of(at("v2")) == files_of(at("again")));
  for (const auto& [option, value, expected] :
       {std::tuple("--w4", "zeros=odd", "--w4: zeros can not be 'odd'"),
        {"--w4", "group=128", "group is said to be something else by qserve.json"},
        {"--to", "gguf", "--to: 'gguf' is no layout that is written"}}) {
    const auto refused = run({"convert", at("qserve"), at("no"), option, value});
    EXPECT_EQ(refused.status, 2) << refused.err;
    EXPECT_NE(refused.err.find(expected), std::string::npos) << refused.err;
    EXPECT_FALSE(fs::exists(at("no")));
  }
}

TEST_F(Quantization, WritesNothingIntoTheFolderThatItReads) {
  const auto before = files_of(source_);
  for (const std::string& inside : {source_ + "/out", source_ + "/../" + fs::path(source_).filename().string()}) {
    const auto refused = run({"convert", source_, inside});
    EXPECT_EQ(refused.status, 2) << refused.err;
    EXPECT_NE(refused.err.find("one lies in the other"), std::string::npos) << refused.err;
  }
  EXPECT_TRUE(files_of(source_) == before);
}

struct Refusal {
  int status;
  Words words;
  const char* text;  // of the message
};

TEST_F(Quantization, RefusesByNameAndWritesNothing) {
  const Refusal refusals[] = {
      {2, {"--quantization", "int8"}, "int8_w8a8"},
      {2, {"--quantization", "fp8_w8a8"}, "fp8"},
      {2, {"--quantization", "nvfp4"}, "nvfp4"},
      {1, {"--quantization", "int8_w8a8_static"}, "oasr quantize"},
      {2, {"--quantization-option", "ignore=*.fc1"}, "ignore"},
      {2, {"--quantization-option", "module_types=linear"}, "module_types"},
      {2, {"--quantization", "int8_w8a8", "--quantization-option", "ingore=*.fc1"}, "did you mean ignore?"},
      {2, {"--quantization", "int8_w8a8", "--quantization-option", "ignore"}, "has no value"},
      {2, {"--quantization", "int8_w8a8", "--quantization-option", "ignore=encoder.*"}, "encoder.*"},
      {2, {"--quantization", "int8_w8a8", "--quantization-option", "ignore=*"}, "no layer is left"},
      {2, {"--quantization", "int8_w8a8", "--quantization-option", "module_types=conv3d"}, "conv3d"},
      {1, {"--quantization", "int8_w8a8", "--quantization-option", "module_types=conv1d"}, "oasr quantize"},
      {2, {"--dtype", "int8"}, "dtype"}};
  std::ofstream(at("a.wav")) << "not reached";
  for (const Refusal& refusal : refusals) {
    for (const Words& command :
         {Words{"convert", source_, at("out")}, Words{"transcribe", "-m", source_, at("a.wav")},
          Words{"bench", source_, "--audio", at("a.wav")}}) {
      Words words = command;
      words.insert(words.end(), refusal.words.begin(), refusal.words.end());
      const auto outcome = run(words);
      const std::string what = command[0] + " " + refusal.words.back();
      EXPECT_EQ(outcome.status, refusal.status) << what << ": " << outcome.err;
      EXPECT_EQ(outcome.err.rfind(kRefused, 0), 0u) << what << ": " << outcome.err;
      EXPECT_NE(outcome.err.find(refusal.text), std::string::npos) << what << ": " << outcome.err;
      EXPECT_TRUE(outcome.out.empty()) << what << ": " << outcome.out;
    }
  }
  EXPECT_FALSE(fs::exists(at("out")));
}

TEST_F(Quantization, AFileThatIsMissingIsNoOption) {
  const Words quantize = {"quantize", source_, at("out"), "--recipe", "int8_w8a8_rtn"};
  for (const char* option : {"--gate-manifest", "--calib-manifest"}) {
    Words words = quantize;
    words.insert(words.end(), {option, "speech"});
    const auto outcome = run(words);
    EXPECT_EQ(outcome.status, 1) << outcome.err;
    EXPECT_EQ(outcome.err.rfind(std::string(kRefused) + "speech: ", 0), 0u) << outcome.err;
  }
}

TEST_F(Quantization, QuantizeJudgesOnTheDeviceThatIsNamed) {
  const auto on = [&](const char* device) {
    return run({"quantize", source_, at("out"), "--recipe", "int8_w8a8_rtn", "--device", device});
  };
  const auto wrong = on("gpu");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_EQ(wrong.err.rfind(std::string(kRefused) + "--device: 'gpu' is not a device", 0), 0u) << wrong.err;
  const auto beyond = on("cuda:999");
  EXPECT_EQ(beyond.status, 1) << beyond.err;
  EXPECT_FALSE(fs::exists(at("out")));
  EXPECT_EQ(on("cpu").status, 0);
}

TEST_F(Quantization, AQuantizedFolderHasChosenItsLayers) {
  ASSERT_EQ(run({"convert", source_, at("v2"), "--quantization", "int8_w8a8"}).status, 0);
  EXPECT_EQ(run({"convert", at("v2"), at("again"), "--quantization", "int8_w8a8"}).status, 0);
  EXPECT_TRUE(files_of(at("v2")) == files_of(at("again")));
  const auto other = run({"convert", at("v2"), at("no"), "--quantization", "int8_w8a8_static"});
  EXPECT_EQ(other.status, 2);
  EXPECT_NE(other.err.find("quantized as int8_w8a8"), std::string::npos) << other.err;
  const auto chosen = run({"convert", at("v2"), at("no"), "--quantization-option", "ignore=*.fc1"});
  EXPECT_EQ(chosen.status, 2);
  EXPECT_NE(chosen.err.find("already chosen"), std::string::npos) << chosen.err;
  EXPECT_FALSE(fs::exists(at("no")));
}

TEST_F(Quantization, InspectShowsEveryLayer) {
  ASSERT_EQ(run({"convert", source_, at("v2"), "--quantization", "int8_w8a8", "--quantization-option",
                 "ignore=*.fc2"}).status, 0);
  const auto text = run({"inspect", at("v2"), "--quantization"});
  EXPECT_EQ(text.status, 0) << text.err;
  for (const char* part :
       {"quantization  int8_w8a8 (oasr ", "quantized     18 linear", "left alone    2 conv1d, 5 linear",
        "model.encoder.layers.0.fc1", "model.encoder.layers.0.final_layer_norm", "KV cache      float16"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part << " in\n" << text.out;
  }
  const Json json = inspected(at("v2"));
  EXPECT_EQ(json["quantization"]["quantized_layers"], 18);
  EXPECT_EQ(json["quantization"]["kv_format"], "float16");
  EXPECT_EQ(json["quantization"]["layers"].size(), 25u);
  EXPECT_EQ(layer(json["quantization"], "proj_out")["full_precision_because"],
            "its weight is the token embedding's");
  EXPECT_FALSE(Json::parse(run({"inspect", at("v2"), "--json"}).out).contains("quantization"));
  const auto plain = run({"inspect", source_, "--quantization"});
  EXPECT_NE(plain.out.find("quantization  none: 2 conv1d, 23 linear in full precision"), std::string::npos)
      << plain.out;
}

TEST_F(Quantization, VariablesAreRefusedByNameOrShown) {
  ASSERT_EQ(run({"convert", source_, at("v2"), "--quantization", "int8_w8a8"}).status, 0);
  const auto fusion = run_with({"OASR_QUANT_FUSION=2"}, {"convert", at("v2"), at("no")});
  EXPECT_EQ(fusion.status, 2);
  EXPECT_NE(fusion.err.find("OASR_QUANT_FUSION"), std::string::npos) << fusion.err;
  const auto backend = run_with({"OASR_SCALED_MM_BACKEND=cublaslt"}, {"convert", at("v2"), at("no")});
  EXPECT_EQ(backend.status, 1);
  EXPECT_NE(backend.err.find("OASR_SCALED_MM_BACKEND"), std::string::npos) << backend.err;
  EXPECT_FALSE(fs::exists(at("no")));
  const auto reference =
      run_with({"OASR_SCALED_MM_BACKEND=reference"}, {"inspect", at("v2"), "--quantization"});
  EXPECT_NE(reference.out.find("reference     22 layers"), std::string::npos) << reference.out;
  EXPECT_EQ(reference.out.find("quantized  "), std::string::npos) << reference.out;
}

TEST_F(Quantization, AModelOfRandomNumbersWritesTheSameFilesOnEveryLane) {
  auto config = models::whisper::small_config();
  config.max_source_positions = 1500;  // windows of 30 s; the rest is small for the plain loops
  config.d_model = 32;
  config.encoder_layers = 1;
  config.encoder_attention_heads = 2;
  source_ = at("windows");
  models::whisper::write_hugging_face(models::whisper::RandomCheckpoint(config), source_);
  make_clips();
  expect_same_files(clips_, clips_);
}

// With tiny.en and clips of the bundled recording: five parts of it, and all of it.
class RealQuantization : public Quantization {
 protected:
  void SetUp() override {
    const auto weights = testing::real_weights("tiny.en", "ct2");
    if (!weights) GTEST_SKIP() << "no real weights (scripts/get_test_weights.sh gets them)";
    source_ = weights->string();
    make_clips();
  }
  Words transcribe(const Words& more) const {
    Words words = {"transcribe", "-m", source_, "--no-fallback", "-f", "json", "--quantization", "int8_w8a8"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // The JSON objects of a run, sorted: one a line, or one over many lines for a single input.
  std::vector<std::string> lines(const Words& variables, const Words& words) {
    const auto outcome = run_with(variables, words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    if (outcome.out.starts_with("{\n")) return {Json::parse(outcome.out).dump()};
    std::istringstream text(outcome.out);
    std::vector<std::string> rows;
    for (std::string line; std::getline(text, line);) rows.push_back(Json::parse(line).dump());
    std::ranges::sort(rows);
    return rows;
  }
};

TEST_F(RealQuantization, WritesTheSameFilesOnEveryLaneWithAnyThreadsBatchAndOrder) {
  // Plain loops take half a minute of processor time a window: one clip.
  expect_same_files(clips_, {clips_[1]});
}

TEST_F(RealQuantization, AConvertedFolderSaysWhatItsSourceSays) {
  ASSERT_EQ(run({"convert", source_, at("v2"), "--quantization", "int8_w8a8"}).status, 0);
  Json converted = Json::parse(
      run({"transcribe", "-m", at("v2"), "--no-fallback", "-f", "json", clips_[0]}).out, nullptr, false);
  Json direct = Json::parse(run(transcribe({clips_[0]})).out, nullptr, false);
  ASSERT_TRUE(converted.is_object() && direct.is_object());
  converted.erase("model");
  direct.erase("model");
  EXPECT_EQ(converted, direct);
}

TEST_F(RealQuantization, TranscribeTakesOptionsInBothSpellings) {
  // What was heard, without the words that asked for it.
  const auto heard = [&](const Words& words) {
    std::vector<Json> transcripts;
    for (const std::string& line : lines({}, words)) {
      transcripts.push_back(Json::parse(line, nullptr, false));
      transcripts.back().erase("quantization_options");
    }
    return transcripts;
  };
  const auto all = heard(transcribe({clips_[0]}));
  std::vector<std::vector<Json>> given;
  for (const Words& options :
       {Words{"--quantization-option", "ignore=*.encoder.*,*.fc1", "module_types=linear"},
        Words{"--quantization_option", "ignore=*.encoder.*,*.fc1", "module_types=linear"},
        Words{"--quantization-option=ignore=*.encoder.*", "--quantization-option", "ignore=*.fc1"}}) {
    Words words = transcribe(options);
    words.push_back(clips_[0]);
    given.push_back(heard(words));
    EXPECT_EQ(given.back(), given.front());
    EXPECT_NE(given.back(), all);  // other log-probabilities
  }
}

TEST_F(RealQuantization, BenchMeasuresEveryLayer) {
  const auto outcome = run({"bench", source_, "--audio", speech_, "--repeat", "1", "--quantization",
                            "int8_w8a8", "--per-layer", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json json = Json::parse(outcome.out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  std::map<std::string, Json> layers;
  for (const auto& row : json["layers"]) layers[row["layer"].get<std::string>()] = row;
  const Json& fc1 = layers["model.encoder.layers.0.fc1"];
  EXPECT_EQ(fc1["scheme"], "int8_w8a8");
  EXPECT_EQ(fc1["kernel"].get<std::string>().rfind("scaled_mm ", 0), 0u);
  EXPECT_EQ(fc1["rows"], 1500);
  EXPECT_GT(fc1["gops"], 0);
  EXPECT_GT(fc1["peak_percent"], 0);
  EXPECT_EQ(layers["model.encoder.conv1"]["scheme"], "");
  EXPECT_TRUE(layers["model.encoder.layer_norm"]["gops"].is_null());
  EXPECT_TRUE(layers.contains("model.decoder.layers.3.encoder_attn"));
  EXPECT_NE(json["model"]["arithmetic"].get<std::string>().find("int8 (44 layers)"), std::string::npos)
      << json["model"]["arithmetic"];
}

}  // namespace
}  // namespace oasr
