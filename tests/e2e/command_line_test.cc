// The program as its users see it: exit statuses, standard output and standard error.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "testing/paths.h"

namespace oasr {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;
using Json = nlohmann::json;

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Outcome {
  int status = -1;
  std::string out, err;
};

// A started `oasr` with its output in files.
class Process {
 public:
  Process(Words words, const fs::path& folder, const std::string& out = {},
          const std::string& in = "/dev/null")
      : folder_(folder), out_(out.empty() ? (folder / "stdout").string() : out) {
    words.insert(words.begin(), OASR_BINARY);
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const auto err = (folder / "stderr").string();
    const auto cache = "OASR_CACHE_DIR=" + (folder / "cache").string();
    std::vector<char*> environment;
    for (char** variable = environ; *variable != nullptr; ++variable) {
      if (std::string_view(*variable).rfind("OASR_", 0) != 0) environment.push_back(*variable);
    }
    std::string offline = "OASR_OFFLINE=1", cache_copy = cache;
    environment.push_back(offline.data());
    environment.push_back(cache_copy.data());
    environment.push_back(nullptr);

    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, in.c_str(), O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_addopen(&files, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    const int failed =
        ::posix_spawn(&pid_, argv[0], &files, nullptr, argv.data(), environment.data());
    posix_spawn_file_actions_destroy(&files);
    EXPECT_EQ(failed, 0);
  }

  pid_t pid() const { return pid_; }

  Outcome wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    Outcome outcome;
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (fs::is_regular_file(out_)) outcome.out = contents(out_);
    outcome.err = contents(folder_ / "stderr");
    return outcome;
  }

 private:
  fs::path folder_;
  std::string out_;
  pid_t pid_ = -1;
};

// 16-bit mono WAV at 16 kHz; `declared` seconds in the header, `samples` in the file.
void write_wav(const fs::path& path, const std::vector<std::int16_t>& samples,
               std::size_t declared) {
  const auto put = [](std::string& text, std::uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  };
  std::string head = "RIFF";
  const auto bytes = static_cast<std::uint32_t>(declared * 2);
  put(head, 36 + bytes, 4);
  head += "WAVEfmt ";
  put(head, 16, 4);
  put(head, 1, 2);
  put(head, 1, 2);
  put(head, 16000, 4);
  put(head, 32000, 4);
  put(head, 2, 2);
  put(head, 16, 2);
  head += "data";
  put(head, bytes, 4);
  std::ofstream file(path, std::ios::binary);
  file << head;
  file.write(reinterpret_cast<const char*>(samples.data()),
             static_cast<std::streamsize>(samples.size() * 2));
}

class CommandLine : public ::testing::Test {
 protected:
  Outcome run(const Words& words, const std::string& out = {}, const std::string& in = "/dev/null") {
    return Process(words, folder_.path(), out, in).wait();
  }
  std::string at(const std::string& name) const { return (folder_.path() / name).string(); }

  testing::TemporaryFolder folder_;
};

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
                                               {"inspect"}}) {
    const auto outcome = run(words);
    EXPECT_EQ(outcome.status, 2) << (words.empty() ? "" : words.back()) << outcome.err;
    EXPECT_TRUE(outcome.out.empty()) << outcome.out;
    EXPECT_EQ(outcome.err.rfind("oasr: error: ", 0), 0u) << outcome.err;
  }
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
}

TEST_F(CommandLine, AnUnknownModelNamesTheCatalogue) {
  const auto outcome = run({"transcribe", "a.wav", "-m", "huge"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("tiny.en"), std::string::npos) << outcome.err;
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
  EXPECT_EQ(outcome.status, json["healthy"].get<bool>() ? 0 : 1);
}

TEST_F(CommandLine, AFullDiskUnderStandardOutputIsAnError) {
  EXPECT_EQ(run({"pull", "--list"}, "/dev/full").status, 1);
  EXPECT_EQ(run({"doctor"}, "/dev/full").status, 1);
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

}  // namespace
}  // namespace oasr
