// `oasr eval` as its users see it.
#include <algorithm>
#include <chrono>
#include <thread>

#include "e2e/process.h"

namespace oasr {
namespace {

class EvalCommand : public CommandLine {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(at(name), std::ios::binary) << text;
    return at(name);
  }

  // `count` utterances, all of the sample recording.
  std::string sample_manifest(int count) const {
    const auto audio = testing::project_dir() / "assets" / "samples" / "jfk.flac";
    std::string text;
    for (int i = 0; i < count; ++i) {
      const Json row = {
          {"audio", audio.string()},
          {"id", "u" + std::to_string(i)},
          {"text",
           "and so my fellow americans ask not what your country can do for you ask what "
           "you can do for your country"}};
      text += row.dump() + "\n";
    }
    return write("m.jsonl", text);
  }

  static std::ptrdiff_t lines_of(const std::string& text) {
    return std::count(text.begin(), text.end(), '\n');
  }

  // Runs until the partial result has `lines` lines, then sends `signal`.
  Outcome stopped(const Words& words, int signal, std::ptrdiff_t lines) const {
    Process process(words, folder_.path());
    for (int i = 0; i < 600; ++i) {
      if (lines_of(contents(at("r.json.partial"))) >= lines) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    ::kill(process.pid(), signal);
    return process.wait();
  }
};

TEST_F(EvalCommand, ScoresTextsWritesItsFilesAndNamesWhatIsMissing) {
  const auto reference = write("ref", "a one two three\nb four\n"),
             hypothesis = write("hyp", "a one too three\nc x\n");
  const auto outcome = run({"eval", "--score", reference, hypothesis, "-o", at("out/r.json")});
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_NE(outcome.out.find("1 without hypothesis, counted as deleted: 'b'"), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("1 hypotheses without reference, not counted: 'c'"),
            std::string::npos);
  const auto json = Json::parse(contents(at("out/r.json")));
  EXPECT_EQ(json["total"]["words"]["percent"], 50.0);
  EXPECT_EQ(contents(at("out/r.txt")), outcome.out);
  EXPECT_EQ(contents(at("out/r.html")).rfind("<!DOCTYPE html>", 0), 0u);
  const auto same = run({"eval", "--compare", at("out/r.json"), at("out/r.json")});
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_NE(same.out.find("2 same text"), std::string::npos) << same.out;
}

TEST_F(EvalCommand, UsageErrorsAreToldBeforeTheModelIsLookedFor) {
  const auto manifest = sample_manifest(1);
  for (const Words& words :
       std::vector<Words>{{},
                          {"base"},
                          {"--manifest", manifest},
                          {"--score", manifest},
                          {"base", "--manifest", manifest, "--compare", "a", "b"},
                          {"base", "--manifest", manifest, "--normalizer", "english"},
                          {"base", "--manifest", manifest, "--beam-size", "100"},
                          {"base", "--manifest", manifest, "--decode", "viterbi"},
                          {"base", "--manifest", manifest, "-o", "r.txt"},
                          {"base", "--manifest", manifest, "--utt2spk", "x"},
                          {"--score", manifest, manifest, "--restart"},
                          {"--compare", manifest, manifest},
                          {"base", "--manifest", write("bad", "{\n")}}) {
    Words all = {"eval"};
    all.insert(all.end(), words.begin(), words.end());
    const auto outcome = run(all);
    EXPECT_EQ(outcome.status, 2) << (words.empty() ? "" : words.back()) << outcome.err;
    EXPECT_EQ(outcome.err.rfind("oasr: error: ", 0), 0u) << outcome.err;
  }
}

TEST_F(EvalCommand, ARunThatWasStoppedOrKilledGoesOnAndAnotherConfigurationIsRefused) {
  const auto weights = testing::real_weights("tiny.en", "ct2");
  if (!weights) GTEST_SKIP() << "no real weights (set OASR_TEST_WEIGHTS)";
  const Words words = {"eval",         weights->string(), "--manifest", sample_manifest(12),
                       "--normalizer", "whisper-english", "-o",         at("r.json")};
  const auto interrupted = stopped(words, SIGINT, 3);
  EXPECT_EQ(interrupted.status, 130) << interrupted.err;
  EXPECT_NE(interrupted.err.find("of 12 utterances are done"), std::string::npos)
      << interrupted.err;
  EXPECT_FALSE(fs::exists(at("r.json")));
  auto other = words;
  other.insert(other.end(), {"--beam-size", "2"});
  const auto refused = run(other);
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("decoding.beam_size: null there, 2 now"), std::string::npos)
      << refused.err;
  const auto before = contents(at("r.json.partial"));
  EXPECT_EQ(stopped(words, SIGKILL, lines_of(before) + 2).status, 137);
  EXPECT_EQ(contents(at("r.json.partial")).rfind(before, 0), 0u);  // nothing was lost
  const auto whole = run(words);
  EXPECT_EQ(whole.status, 0) << whole.err;
  EXPECT_NE(whole.err.find("going on: "), std::string::npos) << whole.err;
  const auto json = Json::parse(contents(at("r.json")));
  ASSERT_EQ(json["utterances"].size(), 12u);
  for (const auto& row : json["utterances"])
    EXPECT_EQ(row["words"], json["utterances"][0]["words"]);
  EXPECT_FALSE(fs::exists(at("r.json.partial")));
}

}  // namespace
}  // namespace oasr
