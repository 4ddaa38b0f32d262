#include "cli/inputs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/output_plan.h"
#include "cli/test_folder.h"

namespace oasr::cli {
namespace {

namespace fs = std::filesystem;

class Inputs : public ::testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& text = "x") {
    const auto path = folder_.path() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }

  TestFolder folder_;
};

std::vector<std::string> stems(const std::vector<Input>& inputs) {
  std::vector<std::string> all;
  for (const auto& input : inputs) all.push_back(input.stem);
  return all;
}

TEST_F(Inputs, AFolderNeedsRecursive) {
  const auto inputs = collect_inputs({{folder_.path().string()}, {}, false});
  ASSERT_FALSE(inputs);
  EXPECT_EQ(inputs.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(inputs.error().remedy.find("--recursive"), std::string::npos);
}

TEST_F(Inputs, AFoldersAudioFilesComeSortedWithTheirSubfolders) {
  put("b.wav");
  put("a/c.MP3");
  put("notes.txt");
  put(".hidden.wav");
  const auto inputs = collect_inputs({{folder_.path().string()}, {}, true});
  ASSERT_TRUE(inputs);
  EXPECT_EQ(stems(*inputs), (std::vector<std::string>{"a/c", "b"}));
}

TEST_F(Inputs, ManifestPathsAreRelativeToIt) {
  const auto manifest = put("m/list.jsonl",
                            "{\"audio\": \"x.wav\", \"id\": \"one\", \"text\": \"ignored\"}\n\n"
                            "{\"audio_filepath\": \"/abs/y.flac\"}\n");
  const auto inputs = collect_inputs({{}, manifest, false});
  ASSERT_TRUE(inputs) << inputs.error().message();
  ASSERT_EQ(inputs->size(), 2u);
  EXPECT_EQ((*inputs)[0].audio, (folder_.path() / "m" / "x.wav").string());
  EXPECT_EQ((*inputs)[0].name(), "one");
  EXPECT_EQ((*inputs)[1].audio, "/abs/y.flac");
  EXPECT_EQ((*inputs)[1].stem, "y");
}

TEST_F(Inputs, AManifestErrorNamesTheLine) {
  const auto manifest = put("list.jsonl", "{\"audio\": \"x.wav\"}\nnot json\n");
  const auto inputs = collect_inputs({{}, manifest, false});
  ASSERT_FALSE(inputs);
  EXPECT_NE(inputs.error().where.find(":2"), std::string::npos);
}

TEST_F(Inputs, AnIdTwiceIsAnError) {
  const auto manifest = put("l.jsonl", R"({"audio": "x", "id": "a"})" "\n" R"({"audio": "y", "id": "a"})");
  EXPECT_FALSE(collect_inputs({{}, manifest, false}));
}

TEST_F(Inputs, AnIdCanNotLeaveTheOutputFolder) {
  const auto manifest = put("l.jsonl", R"({"audio": "x", "id": "../../etc/passwd"})");
  const auto inputs = collect_inputs({{}, manifest, false});
  ASSERT_TRUE(inputs);
  EXPECT_EQ((*inputs)[0].stem, ".._.._etc_passwd");
}

TEST_F(Inputs, AWholeNumberIsAnIdAndOtherTypesAreErrorsOfTheirLine) {
  const auto good = collect_inputs({{}, put("l.jsonl", R"({"audio": "x", "id": 17})"), false});
  ASSERT_TRUE(good) << good.error().message();
  EXPECT_EQ((*good)[0].id, "17");
  for (const char* id : {"1.5", "true", "null", "[1]"}) {
    const auto line = std::string(R"({"audio": "x", "id": )") + id + "}";
    const auto bad = collect_inputs({{}, put("l.jsonl", "\n" + line), false});
    ASSERT_FALSE(bad) << id;
    EXPECT_NE(bad.error().where.find(":2"), std::string::npos) << bad.error().message();
  }
}

TEST_F(Inputs, AManifestIsAFileOrAPipe) {
  const auto of = [](const std::string& path) {
    const auto inputs = collect_inputs({{}, path, false});
    return inputs ? std::string("accepted") : inputs.error().message();
  };
  EXPECT_NE(of(folder_.path().string()).find("is a folder"), std::string::npos);
  EXPECT_NE(of("/dev/zero").find("is a device"), std::string::npos);
  EXPECT_NE(of(put("a") + "/b").find("can not read the manifest"), std::string::npos);
}

TEST_F(Inputs, AManifestLineOfMoreThanAMebibyteIsAnError) {
  const std::string head = R"({"audio": "x.wav", "text": ")", tail = "\"}";
  const auto padded = [&](std::size_t size) {
    return head + std::string(size - head.size() - tail.size(), 'x') + tail;
  };
  EXPECT_TRUE(collect_inputs({{}, put("l.jsonl", padded(1 << 20)), false}));
  const auto bad = collect_inputs({{}, put("l.jsonl", "\n" + padded((1 << 20) + 1) + "\n"), false});
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(bad.error().where.find(":2"), std::string::npos) << bad.error().message();
}

// A file whose reading fails: memory of this process that is not mapped.
TEST_F(Inputs, AManifestThatStopsReadingIsAnError) {
  const auto bad = collect_inputs({{}, "/proc/self/mem", false});
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, ErrorCode::io) << bad.error().message();
}

TEST_F(Inputs, AFolderWithoutAudioIsNamed) {
  const auto inputs = collect_inputs({{folder_.path().string()}, {}, true});
  ASSERT_FALSE(inputs);
  EXPECT_EQ(inputs.error().where, folder_.path().string());
}

TEST_F(Inputs, AnOutputNeverOverwritesAnInput) {
  const auto recording = put("talk.txt");
  fs::create_directory_symlink(folder_.path(), folder_.path() / "link");
  fs::create_hard_link(recording, folder_.path() / "other.txt");
  const std::vector<Input> inputs = {{"", recording, "talk"}};
  const auto into = [&](const std::string& folder, const std::string& file) {
    const auto plan = OutputPlan::make({{OutputFormat::srt, OutputFormat::txt}, folder, file}, inputs);
    return plan ? std::string("accepted") : plan.error().message();
  };
  const auto root = folder_.path().string();
  for (const auto& folder : {root, root + "/./", root + "/link"}) {
    EXPECT_NE(into(folder, "").find("would overwrite"), std::string::npos) << folder;
  }
  EXPECT_NE(into("", root + "/other").find("would overwrite"), std::string::npos);
  EXPECT_EQ(into(root + "/out", ""), "accepted");
  EXPECT_EQ(into("", root + "/third"), "accepted");
}

TEST_F(Inputs, AnOutputThatCanNotBeWrittenIsToldBefore) {
  const std::vector<Input> inputs = {{"", "a.wav", "a"}};
  const auto root = folder_.path().string();
  const auto into = [&](const std::string& folder, const std::string& file) {
    const auto good = OutputPlan::make({{OutputFormat::txt}, folder, file}, inputs)->check_writable(inputs);
    return good ? std::string("yes") : good.error().message();
  };
  fs::create_directories(folder_.path() / "out/a.txt");
  put("file");
  EXPECT_EQ(into("", root + "/new/name"), "yes");
  EXPECT_EQ(into(root, ""), "yes");
  EXPECT_TRUE(fs::is_empty(root + "/new"));
  EXPECT_NE(into("", root + "/file/name").find("can not write into the folder"), std::string::npos);
  EXPECT_NE(into("", "/proc/name").find("can not write into the folder"), std::string::npos);
  EXPECT_NE(into("", root + "/out/a").find("a folder has this name"), std::string::npos);
  EXPECT_NE(into(root + "/out", "").find("a folder has this name"), std::string::npos);
  EXPECT_EQ(into("", root + "/" + std::string(243, 'n')), "yes");
  EXPECT_NE(into("", root + "/" + std::string(244, 'n')).find("too long"), std::string::npos);
}

TEST_F(Inputs, NothingAndStandardInputTwiceAreErrors) {
  EXPECT_FALSE(collect_inputs({}));
  EXPECT_FALSE(collect_inputs({{"-", "-"}, {}, false}));
}

TEST(Shard, PartsCoverEveryInputOnce) {
  std::vector<Input> inputs;
  for (int i = 0; i < 11; ++i) inputs.push_back({std::to_string(i), "x", "x"});
  std::multiset<std::string> seen;
  for (std::size_t i = 1; i <= 3; ++i) {
    for (const auto& input : shard_of(inputs, {i, 3})) seen.insert(input.id);
  }
  EXPECT_EQ(seen.size(), 11u);
  for (const auto& input : inputs) EXPECT_EQ(seen.count(input.id), 1u);
}

TEST(Shard, IsParsedStrictly) {
  const auto good = parse_shard("2/8");
  ASSERT_TRUE(good);
  EXPECT_EQ(good->index, 2u);
  EXPECT_EQ(good->count, 8u);
  for (const char* text : {"0/8", "9/8", "1", "/", "a/b", "1/2/3", "-1/2", "1/0", ""}) {
    EXPECT_FALSE(parse_shard(text)) << text;
  }
}

TEST(OutputPlan, SameStemsKeepTheirExtension) {
  const std::vector<Input> inputs = {{"", "x/a.wav", "a"}, {"", "x/a.mp3", "a"}, {"", "b.wav", "b"}};
  const auto plan = OutputPlan::make({{OutputFormat::txt}, "out", ""}, inputs);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->path(inputs[0], OutputFormat::txt), "out/a.wav.txt");
  EXPECT_EQ(plan->path(inputs[1], OutputFormat::txt), "out/a.mp3.txt");
  EXPECT_EQ(plan->path(inputs[2], OutputFormat::txt), "out/b.txt");
}

TEST(OutputPlan, TwoInputsOfOneNameAreAnErrorBeforeTheWork) {
  const std::vector<Input> inputs = {{"", "x/a.wav", "a"}, {"", "y/a.wav", "a"}};
  const auto plan = OutputPlan::make({{OutputFormat::txt}, "out", ""}, inputs);
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().what.find("x/a.wav"), std::string::npos);
  EXPECT_EQ(plan.error().where, "y/a.wav");
}

TEST(OutputPlan, AKeptExtensionMeetsNoOtherStem) {
  const std::vector<Input> inputs = {{"", "a.wav", "a"}, {"", "a.mp3", "a"}, {"", "a.wav.ogg", "a.wav"}};
  EXPECT_FALSE(OutputPlan::make({{OutputFormat::txt}, "out", ""}, inputs));
}

TEST(OutputPlan, StandardOutputTakesOneFormatThatFits) {
  const std::vector<Input> one = {{"", "a.wav", "a"}}, two = {{"", "a.wav", "a"}, {"", "b.wav", "b"}};
  EXPECT_TRUE(OutputPlan::make({{OutputFormat::srt}, "", ""}, one));
  EXPECT_FALSE(OutputPlan::make({{OutputFormat::srt, OutputFormat::txt}, "", ""}, one));
  EXPECT_FALSE(OutputPlan::make({{OutputFormat::srt}, "", ""}, two));
  EXPECT_TRUE(OutputPlan::make({{OutputFormat::json}, "", ""}, two));
}

TEST(OutputPlan, AnOutputFileIsForOneInput) {
  const std::vector<Input> one = {{"", "a.wav", "a"}}, two = {{"", "a.wav", "a"}, {"", "b.wav", "b"}};
  const auto plan = OutputPlan::make({{OutputFormat::srt}, "", "x/name"}, one);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->path(one[0], OutputFormat::srt), "x/name.srt");
  EXPECT_FALSE(OutputPlan::make({{OutputFormat::srt}, "", "name"}, two));
}

TEST(OutputPlan, AnExtensionOfTheFormatIsNotDoubled) {
  const std::vector<Input> one = {{"", "a.wav", "a"}};
  const auto path = [&](const std::string& name) {
    return OutputPlan::make({{OutputFormat::srt}, "", name}, one)->path(one[0], OutputFormat::srt);
  };
  EXPECT_EQ(path("x/z.srt"), "x/z.srt");
  EXPECT_EQ(path("x/z.txt"), "x/z.txt.srt");
  EXPECT_EQ(path(".srt"), ".srt.srt");
}

TEST(OutputPlan, IsDoneWhenEveryFormatIsThere) {
  const TestFolder folder;
  const std::vector<Input> inputs = {{"", "a.wav", "a"}};
  const auto plan =
      OutputPlan::make({{OutputFormat::txt, OutputFormat::srt}, folder.path().string(), ""}, inputs);
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->done(inputs[0]));
  std::ofstream(folder.path() / "a.txt") << "";
  EXPECT_FALSE(plan->done(inputs[0]));
  std::ofstream(folder.path() / "a.srt") << "";
  EXPECT_TRUE(plan->done(inputs[0]));
}

TEST(OutputFormats, AreParsedInOrderOnce) {
  const auto formats = parse_output_formats({"srt", "all"});
  ASSERT_TRUE(formats);
  EXPECT_EQ(formats->size(), 6u);
  EXPECT_EQ(formats->front(), OutputFormat::srt);
  EXPECT_FALSE(parse_output_formats({"docx"}));
}

}  // namespace
}  // namespace oasr::cli
