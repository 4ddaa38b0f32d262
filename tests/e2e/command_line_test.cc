// The program as its users see it: exit statuses, standard output and standard error.
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "e2e/process.h"

namespace oasr {
namespace {

TEST_F(CommandLine, VersionAndHelpAreSuccesses) {
  EXPECT_EQ(run({"version"}).status, 0);
  EXPECT_EQ(run({"--version"}).status, 0);
  EXPECT_EQ(run({"--help"}).status, 0);
  const auto help = run({"transcribe", "--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.out.find("--word-timestamps"), std::string::npos);
}

TEST_F(CommandLine, UsageErrorsAreStatusTwoAndOneLine) {
  for (const Words& words : std::vector<Words>{{},
                                               {"transcrib"},
                                               {"transcribe"},
                                               {"transcribe", "a.wav", "--langauge", "en"},
                                               {"transcribe", "a.wav", "-et", "2"},
                                               {"transcribe", "a.wav", "--threads", "many"},
                                               {"transcribe", "a.wav", "-f", "docx"},
                                               {"transcribe", "a.wav", "-f", "txt,srt"},
                                               {"transcribe", "a.wav", "--shard", "3/2"},
                                               {"transcribe", "a.wav", "--skip-existing"},
                                               {"transcribe", "/tmp"},
                                               {"bench", "base"},
                                               {"bench", "kernels", "--shapes", "12x"},
                                               {"bench", "kernels", "--op", "matmul"},
                                               {"bench", "kernels", "--op", "norm", "--shapes", "1x2x3"},
                                               {"bench", "kernels", "--audio", "a.wav"},
                                               {"inspect"}}) {
    const auto outcome = run(words);
    EXPECT_EQ(outcome.status, 2) << (words.empty() ? "" : words.back()) << outcome.err;
    EXPECT_TRUE(outcome.out.empty()) << outcome.out;
    EXPECT_EQ(outcome.err.rfind("oasr: error: ", 0), 0u) << outcome.err;
  }
}

TEST_F(CommandLine, WhatTheParserRefusesHasARemedy) {
  EXPECT_EQ(run({}).err, "oasr: error: no command is given (oasr --help lists the commands)\n");
  EXPECT_EQ(run({"bench", "kernels", "base"}).err,
            "oasr: error: base: was not expected (oasr bench kernels --help shows what it takes)\n");
  for (const Words& words : std::vector<Words>{{"convert", "base"}, {"transcribe", "a.wav", "--batch-size", "many"}}) {
    const auto said = run(words).err;
    EXPECT_NE(said.find("(oasr " + words[0] + " --help shows what it takes)"), std::string::npos) << said;
  }
}

// The model is not in the cache and the network is off: status 1 would mean that it was looked for.
TEST_F(CommandLine, AWrongOptionIsToldOnceAndBeforeTheModel) {
  for (const Words& words : std::vector<Words>{{"--raw", "foo"},
                                               {"--raw", "s16le", "--raw-rate", "0"},
                                               {"--batch-size", "0"},
                                               {"--vad-threshold", "nan"},
                                               {"--quantization", "foo"},
                                               {"--quantization-option", "ingore=a"},
                                               {"--threads", "-5"},
                                               {"--beam-size", "100"},
                                               {"--language", "xx"},
                                               {"--dtype", "int8"},
                                               {"--channel", "-1"},
                                               {"--temperature", "0,200"}}) {
    Words all = {"transcribe", "a.wav", "b.wav"};
    all.insert(all.end(), words.begin(), words.end());
    const auto outcome = run(all);
    EXPECT_EQ(outcome.status, 2) << words.front() << outcome.err;
    EXPECT_EQ(outcome.err.rfind("oasr: error: " + words[words.size() - 2], 0), 0u) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  EXPECT_EQ(run({"bench", "base", "--audio", "x", "--beam-size", "100"}).status, 2);
  EXPECT_EQ(run({"bench", "base", "--audio", "x", "--repeat", "0"}).status, 2);
  EXPECT_EQ(run({"convert", "base", at("out"), "--quantization", "foo"}).status, 2);
  EXPECT_EQ(run({"convert", "base", ""}).status, 2);
}

TEST_F(CommandLine, BenchMeasuresSingleKernelsAndKeepsTheResult) {
  const auto outcome = run({"bench", "kernels", "--op", "scaled_mm,linear", "--shapes", "3x20x33", "--device", "cpu",
                            "--repeat", "2", "--json", "--output", at("")});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = Json::parse(outcome.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << outcome.out;
  EXPECT_EQ(json["device"]["kind"], "cpu");
  EXPECT_GT(json["ceilings"]["copy_gbs"], 0);
  EXPECT_TRUE(json.contains("commit"));
  std::map<std::string, int> chosen;
  for (const auto& row : json["kernels"]) {
    EXPECT_GT(row["median_us"], 0) << row;
    EXPECT_EQ(row["rounds"], 2) << row;
    chosen[row["op"].get<std::string>()] += row["chosen"].get<bool>() ? 1 : 0;
  }
  EXPECT_EQ(chosen, (std::map<std::string, int>{{"linear", 1}, {"scaled_mm", 1}}));
  std::vector<std::string> written;
  for (const auto& entry : fs::directory_iterator(at(""))) {
    if (entry.path().extension() == ".json") written.push_back(entry.path());
  }
  ASSERT_EQ(written.size(), 1u);
  EXPECT_EQ(fs::path(written[0]).filename().string().rfind("kernels-", 0), 0u);
  EXPECT_EQ(contents(written[0]), outcome.out);
  const auto table = run({"bench", "kernels", "--op=norm", "--shapes=4x64", "--device=cpu", "--repeat=1"});
  EXPECT_EQ(table.status, 0) << table.err;
  EXPECT_NE(table.out.find("add + layer_norm_quant scalar"), std::string::npos) << table.out;
  EXPECT_EQ(table.out.find("cuBLASLt"), std::string::npos) << table.out;  // of GPUs alone
}

TEST_F(CommandLine, AnOptionOfNoCommandIsNamed) {
  EXPECT_NE(run({"--foo"}).err.find("--foo: "), std::string::npos);
  EXPECT_EQ(run({"--foo"}).status, 2);
}

TEST_F(CommandLine, OfflineIsOneOrZero) {
  const auto outcome =
      Process({"transcribe", "a.wav"}, folder_.path(), {}, "/dev/null", {"OASR_OFFLINE=junk"}).wait();
  EXPECT_EQ(outcome.status, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("OASR_OFFLINE: 'junk'"), std::string::npos) << outcome.err;
}

TEST_F(CommandLine, ControlCharactersOfANameAreShownNotObeyed) {
  const auto outcome = run({"inspect", "a\x1b[2Jb\nc"});
  EXPECT_NE(outcome.err.find("a\\x1b[2Jb\\x0ac"), std::string::npos) << outcome.err;
}

TEST_F(CommandLine, AnUnknownOptionComesWithASuggestion) {
  EXPECT_NE(run({"transcribe", "a.wav", "--langauge", "en"}).err.find("did you mean --language?"),
            std::string::npos);
  EXPECT_NE(run({"transcrib", "a.wav"}).err.find("did you mean: oasr transcribe?"),
            std::string::npos);
}

TEST_F(CommandLine, OfflineWithoutACachedModelIsAnErrorThatSaysSo) {
  const auto outcome = run({"transcribe", "a.wav"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("OASR_OFFLINE"), std::string::npos) << outcome.err;
  EXPECT_EQ(run({"pull", "tiny"}).status, 1);
  const auto unknown = run({"pull", "tiny", "--source", "nowhere"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_EQ(unknown.err, "oasr: error: tiny: has no source 'nowhere' (sources: openai, huggingface)\n");
}

TEST_F(CommandLine, AnUnknownModelNamesTheCatalogue) {
  const auto outcome = run({"transcribe", "a.wav", "-m", "huge"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("tiny.en"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("(turbo)"), std::string::npos) << outcome.err;
  EXPECT_NE(run({"transcribe", "a.wav", "-m", "Base"}).err.find("did you mean base?"), std::string::npos);
}

TEST_F(CommandLine, PullListsTheCatalogueAsTextAndJson) {
  const auto text = run({"pull", "--list"});
  EXPECT_EQ(text.status, 0);
  EXPECT_NE(text.out.find("large-v3-turbo"), std::string::npos);
  const auto json = Json::parse(run({"pull", "--list", "--json"}).out, nullptr, false);
  ASSERT_TRUE(json.is_array());
  EXPECT_EQ(json.size(), 12u);
}

TEST_F(CommandLine, DoctorReportsAsJson) {
  const auto outcome = run({"doctor", "--json"});
  const auto json = Json::parse(outcome.out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_TRUE(json.contains("processor"));
  EXPECT_TRUE(json.contains("findings"));
  ASSERT_TRUE(json.contains("gpu kernel gaps"));
  EXPECT_TRUE(json["gpu kernel gaps"].contains("scaled-mm-int8-sm75"));
  EXPECT_EQ(outcome.status, json["healthy"].get<bool>() ? 0 : 1);
}

TEST_F(CommandLine, AFullDiskUnderStandardOutputIsAnError) {
  EXPECT_EQ(run({"pull", "--list"}, "/dev/full").status, 1);
  EXPECT_EQ(run({"doctor"}, "/dev/full").status, 1);
  EXPECT_EQ(run({"--help"}, "/dev/full").status, 1);
  EXPECT_EQ(run({"transcribe", "--help"}, "/dev/full").status, 1);
}

TEST_F(CommandLine, InspectSaysWhatIsNoCheckpoint) {
  std::ofstream(at("x.txt")) << "hello";
  const auto outcome = run({"inspect", at("x.txt")});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err.rfind("oasr: error: ", 0), 0u);
}

// With tiny.en and the bundled recording.
class RealModel : public CommandLine {
 protected:
  void SetUp() override {
    const auto weights = testing::real_weights("tiny.en", "ct2");
    if (!weights) GTEST_SKIP() << "no real weights (scripts/get_test_weights.sh gets them)";
    model_ = weights->string();
    speech_ = (testing::project_dir() / "assets" / "samples" / "jfk.flac").string();
    ASSERT_TRUE(fs::exists(speech_));
    write_wav(at("silence.wav"), std::vector<std::int16_t>(16000 * 3), 16000 * 3);
    std::ofstream(at("text.wav")) << "this is no audio\n";
  }

  Words transcribe(const Words& more) const {
    Words words = {"transcribe", "-m", model_, "--no-fallback"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  std::string model_, speech_;
};

constexpr std::string_view kWords = "ask not what your country can do for you";

TEST_F(RealModel, PrintsTheTextAndNothingElse) {
  const auto outcome = run(transcribe({speech_}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find(kWords), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.back(), '\n');
  EXPECT_TRUE(outcome.err.empty()) << outcome.err;
}

TEST_F(RealModel, ReadsStandardInput) {
  const auto outcome = run(transcribe({"-"}), {}, speech_);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find(kWords), std::string::npos) << outcome.out;
}

TEST_F(RealModel, JsonOnStandardOutputIsOneObject) {
  const auto json = Json::parse(run(transcribe({speech_, "-f", "json"})).out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["audio"], speech_);
  EXPECT_EQ(json["language"], "en");
  EXPECT_FALSE(json["truncated"].get<bool>());
  EXPECT_FALSE(json["segments"].empty());
  EXPECT_EQ(json["options"]["beam_size"], 1);
  EXPECT_TRUE(json["dtype"].is_string());
  EXPECT_TRUE(json["quantization"].is_null());
}

TEST_F(RealModel, SeveralInputsArePrefixedAndOneBadOneStopsNothing) {
  const auto outcome = run(transcribe({at("text.wav"), speech_, at("missing.wav")}));
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_NE(outcome.out.find(speech_ + ": "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.err.find("text.wav"), std::string::npos);
  EXPECT_NE(outcome.err.find("missing.wav"), std::string::npos);
  EXPECT_NE(outcome.err.find("1 transcribed, 2 failed"), std::string::npos) << outcome.err;
}

TEST_F(RealModel, SeveralInputsAsJsonAreLinesInInputOrderWithErrorsAmongThem) {
  const auto outcome = run(
      transcribe({at("text.wav"), speech_, at("silence.wav"), "-f", "json", "--batch-size", "3"}));
  std::istringstream lines(outcome.out);
  std::vector<Json> rows;
  for (std::string line; std::getline(lines, line);) {
    rows.push_back(Json::parse(line, nullptr, false));
  }
  ASSERT_EQ(rows.size(), 3u) << outcome.out;
  EXPECT_EQ(rows[0]["error"]["code"], "bad_audio");
  EXPECT_EQ(rows[1]["audio"], speech_);
  EXPECT_EQ(rows[2]["text"], "");
}

TEST_F(RealModel, AllInputsFailedIsStatusFour) {
  EXPECT_EQ(run(transcribe({at("text.wav"), at("missing.wav")})).status, 4);
  EXPECT_EQ(run(transcribe({at("text.wav")})).status, 4);
}

TEST_F(RealModel, TruncatedAudioIsTranscribedFlaggedAndStatusFive) {
  auto bytes = contents(speech_);
  std::ofstream(at("cut.flac"), std::ios::binary) << bytes.substr(0, bytes.size() * 6 / 10);
  const auto outcome = run(transcribe({at("cut.flac"), "-f", "json"}));
  EXPECT_EQ(outcome.status, 5) << outcome.err;
  const auto json = Json::parse(outcome.out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_TRUE(json["truncated"].get<bool>());
  EXPECT_FALSE(json["text"].get<std::string>().empty());
  EXPECT_NE(outcome.err.find("warning"), std::string::npos);
}

TEST_F(RealModel, SilenceGivesNoTextAWarningAndStatusSix) {
  const auto outcome = run(transcribe({at("silence.wav")}));
  EXPECT_EQ(outcome.status, 6) << outcome.err;
  EXPECT_TRUE(outcome.out.empty()) << outcome.out;
  EXPECT_NE(outcome.err.find("warning"), std::string::npos) << outcome.err;
}

TEST_F(RealModel, WritesEveryFormatIntoTheFolder) {
  const auto outcome = run(transcribe({speech_, "-o", at("out"), "-f", "all"}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.empty()) << outcome.out;
  for (const char* extension : {"txt", "json", "srt", "vtt", "tsv", "lrc"}) {
    EXPECT_NE(contents(at("out/jfk.") + extension).find("country"), std::string::npos) << extension;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(at("out")), fs::directory_iterator()), 6);
}

TEST_F(RealModel, SkipExistingFinishesAKilledJob) {
  fs::create_directory(at("in"));
  constexpr int kFiles = 6;
  for (int i = 0; i < kFiles; ++i) {
    fs::copy_file(speech_, at("in/" + std::to_string(i) + ".flac"));
  }
  const auto words = transcribe({"-r", at("in"), "-o", at("out"), "--skip-existing"});
  Process killed(words, folder_.path());
  while (!fs::exists(at("out/0.txt")) && ::kill(killed.pid(), 0) == 0 && !fs::exists(at("out/5.txt"))) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ::kill(killed.pid(), SIGKILL);
  EXPECT_EQ(killed.wait().status, 128 + SIGKILL);
  for (const auto& file : fs::directory_iterator(at("out"))) {
    if (file.path().extension() == ".txt") {
      EXPECT_NE(contents(file.path()).find(kWords), std::string::npos);  // whole or not at all
    }
  }
  const auto outcome = run(words);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("skipped"), std::string::npos) << outcome.err;
  for (int i = 0; i < kFiles; ++i) {
    EXPECT_NE(contents(at("out/" + std::to_string(i) + ".txt")).find(kWords), std::string::npos);
  }
  EXPECT_EQ(run(words).status, 0);  // nothing is left to do
}

TEST_F(RealModel, CtrlCStopsCleanly) {
  fs::create_directory(at("in"));
  for (int i = 0; i < 40; ++i) fs::copy_file(speech_, at("in/" + std::to_string(i) + ".flac"));
  Process process(transcribe({"-r", at("in"), "-o", at("out")}), folder_.path());
  std::error_code ignored;
  while (fs::is_empty(at("out"), ignored) || ignored) {
    ignored.clear();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ::kill(process.pid(), SIGINT);
  const auto outcome = process.wait();
  EXPECT_EQ(outcome.status, 130) << outcome.err;
  EXPECT_NE(outcome.err.find("not reached"), std::string::npos) << outcome.err;
  for (const auto& file : fs::directory_iterator(at("out"))) {
    EXPECT_EQ(file.path().extension(), ".txt") << "a temporary file stayed: " << file.path();
  }
}

TEST_F(RealModel, CtrlCEndsTheWaitForAPipe) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  for (const bool with_writer : {false, true}) {
    Process process(transcribe({at("pipe")}), folder_.path());
    const int writer = with_writer ? ::open(at("pipe").c_str(), O_WRONLY) : -1;  // and never writes
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    ::kill(process.pid(), SIGINT);
    const auto outcome = process.wait();
    if (writer >= 0) ::close(writer);
    EXPECT_EQ(outcome.status, 130) << outcome.err;
    EXPECT_NE(outcome.err.find("stopped before the end"), std::string::npos) << outcome.err;
  }
}

TEST_F(RealModel, APipeWhoseWriterComesLateIsRead) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  Process process(transcribe({at("pipe")}), folder_.path());
  std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  std::ofstream(at("pipe"), std::ios::binary) << contents(speech_);
  const auto outcome = process.wait();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find(kWords), std::string::npos) << outcome.out;
}

TEST_F(RealModel, AFolderThatCanNotBeWrittenIsToldBeforeTheWork) {
  std::ofstream(at("file")) << "x";
  const auto outcome = run(transcribe({speech_, "-o", at("file") + "/out"}));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("can not write into the folder"), std::string::npos) << outcome.err;
}

TEST_F(RealModel, AFullDiskUnderTheTextIsAnError) {
  const auto outcome = run(transcribe({speech_}), "/dev/full");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("No space left"), std::string::npos) << outcome.err;
}

TEST_F(RealModel, AManifestsIdsNameTheOutputs) {
  std::ofstream(at("list.jsonl")) << Json{{"audio", speech_}, {"id", "first"}} << "\n"
                                  << Json{{"audio", "silence.wav"}, {"id", "second"}} << "\n";
  const auto outcome =
      run(transcribe({"--manifest", at("list.jsonl"), "--shard", "1/2", "-o", at("out")}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(fs::exists(at("out/first.txt")));
  EXPECT_FALSE(fs::exists(at("out/second.txt")));
}

TEST_F(RealModel, TheSameRunTwiceGivesTheSameBytes) {
  const auto words = transcribe({speech_, "-f", "json", "--temperature", "0.7", "--seed", "7"});
  const auto first = run(words), second = run(words);
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_EQ(first.out, second.out);
  EXPECT_NE(first.out.find("\"seed\": 7"), std::string::npos);
}

TEST_F(RealModel, InspectAndBenchDescribeTheModel) {
  const auto inspected = Json::parse(run({"inspect", model_, "--json"}).out, nullptr, false);
  ASSERT_TRUE(inspected.is_object());
  EXPECT_EQ(inspected["container"], "ctranslate2");
  EXPECT_EQ(inspected["size"], "tiny.en");
  EXPECT_TRUE(inspected["loads"].get<bool>());
  const auto bench = run({"bench", model_, "--audio", speech_, "--repeat", "1", "--json"});
  EXPECT_EQ(bench.status, 0) << bench.err;
  const auto json = Json::parse(bench.out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_GT(json["audio"][0]["encoder_ms_per_window"], 0);
  EXPECT_NE(json["audio"][0]["text"].get<std::string>().find(kWords), std::string::npos);
}

TEST_F(RealModel, BenchRefusesAResultWithoutText) {
  const auto outcome = run({"bench", model_, "--audio", at("silence.wav"), "--repeat", "1"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("gave no text"), std::string::npos) << outcome.err;
}

TEST_F(RealModel, BenchCountsRecordingsWithoutTextAmongThoseDecodedTogether) {
  const auto bench = [&](const Words& audio) {
    Words words = {"bench", model_, "--repeat", "1", "--batch-size", "2", "--json", "--audio"};
    words.insert(words.end(), audio.begin(), audio.end());
    return run(words);
  };
  for (const auto& [audio, without] : {std::pair(Words{speech_, at("silence.wav"), at("silence.wav")}, 2),
                                       {Words{speech_, speech_}, 0}}) {
    const auto outcome = bench(audio);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const Json row = Json::parse(outcome.out, nullptr, false)["audio"][0];
    EXPECT_EQ(row["recordings"], audio.size());
    EXPECT_EQ(row["without_text"], without);
  }
  const auto none = bench({at("silence.wav"), at("silence.wav")});
  EXPECT_EQ(none.status, 1);
  EXPECT_NE(none.err.find("all recordings: gave no text"), std::string::npos) << none.err;
}

}  // namespace
}  // namespace oasr
