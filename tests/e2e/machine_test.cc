// What a machine lacks, on the command line: a GPU whose driver works, file descriptors, the folder of the outputs; and
// variables that are wrong.
#include <cmath>
#include <numbers>
#include <thread>

#include "e2e/process.h"

namespace oasr {
namespace {

// CUDA's numbers of errors.
struct BrokenDriver {
  const char* folder;  // of a libcuda.so.1: OASR_FAKE_DRIVERS
  const char* says;
};
constexpr BrokenDriver kBroken[] = {
    {"old", "the NVIDIA driver knows CUDA 11.0, oasr needs "},
    {"unknown_error", "the NVIDIA driver can not be used: "},
    {"no_version", "the NVIDIA driver can not be used: "},  // not: knows 99.0 and is too old
    {"no_driver", "the NVIDIA driver is damaged: its libcuda.so.1 says no version of CUDA"},
};

class Machine : public CommandLine {
 protected:
  void SetUp() override {
    model_ = testing::test_data("wenet/batch_norm_causal").string();
    std::vector<std::int16_t> tone(8000);
    for (std::size_t i = 0; i < tone.size(); ++i) {
      const double t = static_cast<double>(i) / 16000;
      tone[i] = static_cast<std::int16_t>(9000 * std::sin(2 * std::numbers::pi * (200 + 300 * t) * t));
    }
    write_wav(at("a.wav"), tone, tone.size());
  }
  static std::string fake(const std::string& folder) { return "LD_LIBRARY_PATH=" + folder; }
  static std::string fake_driver(const std::string& name) { return fake(std::string(OASR_FAKE_DRIVERS) + "/" + name); }
  Outcome run_with(const Words& variables, const Words& words) {
    return Process(words, folder_.path(), {}, "/dev/null", variables).wait();
  }
  Words transcribe(const Words& more) const {
    Words words = {"transcribe", "-m", model_};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // The finding of `oasr doctor` that says `text`, or null.
  Json finding(const Words& variables, const std::string& text) {
    const auto outcome = run_with(variables, {"doctor", "--json"});
    const Json report = Json::parse(outcome.out, nullptr, false);
    EXPECT_TRUE(report.is_object()) << outcome.err;
    EXPECT_EQ(outcome.status, report["healthy"].get<bool>() ? 0 : 1);
    for (const Json& one : report["findings"]) {
      if (one["what"].get<std::string>().find(text) == std::string::npos) continue;
      EXPECT_FALSE(one["problem"].get<bool>() && report["healthy"].get<bool>()) << one;
      return one;
    }
    return nullptr;
  }
  void expect_told(const std::string& driver, const std::string& says) {
    const auto told = run_with({driver}, transcribe({at("a.wav")}));
    EXPECT_EQ(told.status, 0) << told.err;
    EXPECT_EQ(told.err.rfind("oasr: warning: the processor is used: device cuda: " + says, 0), 0u) << says << ": " << told.err;
    EXPECT_EQ(std::count(told.err.begin(), told.err.end(), '\n'), 1) << told.err;
    const auto asked = run_with({driver}, transcribe({at("a.wav"), "--device", "cpu"}));
    EXPECT_TRUE(asked.err.empty()) << asked.err;
    EXPECT_EQ(told.out, asked.out);
    const auto wanted = run_with({driver}, transcribe({at("a.wav"), "--device", "cuda"}));
    EXPECT_EQ(wanted.status, 1);
    EXPECT_NE(wanted.err.find(says), std::string::npos) << wanted.err;
    const auto half = run_with({driver}, transcribe({at("a.wav"), "--arithmetic", "float16"}));
    EXPECT_EQ(half.status, 2);
    EXPECT_NE(half.err.find(says), std::string::npos) << half.err;
    EXPECT_NE(half.err.find("mend the driver, oasr doctor says how"), std::string::npos) << half.err;
    const Json found = finding({driver}, says);
    ASSERT_TRUE(found.is_object()) << says;
    EXPECT_TRUE(found["problem"].get<bool>());
    EXPECT_FALSE(found["remedy"].get<std::string>().empty());
  }

  std::string model_;
};

TEST_F(Machine, ADriverThatCanNotBeUsedIsToldAndTheProcessorTaken) {
  if (!OASR_BUILT_WITH_CUDA) GTEST_SKIP() << "built without CUDA";
  for (const BrokenDriver& driver : kBroken) expect_told(fake_driver(driver.folder), driver.says);
  fs::create_directories(at("text"));
  std::ofstream(at("text/libcuda.so.1")) << "this is no library\n";
  expect_told(fake(at("text")), "the NVIDIA driver is damaged: ");
}

TEST_F(Machine, ABenchmarkSaysWhyItIsOfTheProcessor) {
  if (!OASR_BUILT_WITH_CUDA) GTEST_SKIP() << "built without CUDA";
  const Words words = {"bench", model_, "--audio", at("a.wav"), "--repeat", "1", "--json"};
  const auto outcome = run_with({fake_driver("old")}, words);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("oasr: warning: the processor is used: "), std::string::npos) << outcome.err;
  const Json json = Json::parse(outcome.out, nullptr, false);
  EXPECT_EQ(json["model"]["device"], "cpu");
  EXPECT_EQ(json["model"]["no_gpu_because"].get<std::string>().rfind(kBroken[0].says, 0), 0u) << json["model"];
  EXPECT_FALSE(Json::parse(run_with({fake_driver("no_device")}, words).out)["model"].contains("no_gpu_because"));
}

TEST_F(Machine, ADriverWithoutAGpuIsOnlyNoted) {
  if (!OASR_BUILT_WITH_CUDA) GTEST_SKIP() << "built without CUDA";
  const std::string driver = fake_driver("no_device"), says = "the NVIDIA driver sees no GPU";
  const auto outcome = run_with({driver}, transcribe({at("a.wav")}));
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(outcome.err.empty()) << outcome.err;
  const Json found = finding({driver}, says);
  ASSERT_TRUE(found.is_object());
  EXPECT_FALSE(found["problem"].get<bool>());
}

TEST_F(Machine, ADriverBesideABuildWithoutCudaIsNoted) {
  if (OASR_BUILT_WITH_CUDA) GTEST_SKIP() << "built with CUDA";
  const std::string driver = fake_driver("old");
  EXPECT_TRUE(run_with({driver}, transcribe({at("a.wav")})).err.empty());
  const Json found = finding({driver}, "oasr was built without CUDA");
  ASSERT_TRUE(found.is_object());
  EXPECT_FALSE(found["problem"].get<bool>());
}

TEST_F(Machine, AWrongWordForGraphsIsToldWithoutAGpuToo) {
  const std::string wrong = "OASR_GPU_GRAPHS=yes", says = "OASR_GPU_GRAPHS: 'yes' is neither 0 nor 1";
  for (const Words& words :
       {transcribe({at("a.wav"), "--device", "cpu"}), transcribe({at("a.wav"), "--streaming", "--device", "cpu"}),
        Words{"bench", model_, "--audio", at("a.wav"), "--device", "cpu"},
        Words{"bench", "kernels", "--op=norm", "--shapes=4x64", "--repeat=1", "--device", "cpu"}}) {
    const auto outcome = run_with({wrong}, words);
    EXPECT_EQ(outcome.status, 2) << words[0];
    EXPECT_EQ(outcome.err.rfind("oasr: error: " + says, 0), 0u) << words[0] << ": " << outcome.err;
  }
  const Json found = finding({wrong}, says);
  ASSERT_TRUE(found.is_object());
  EXPECT_TRUE(found["problem"].get<bool>());
  EXPECT_EQ(run_with({"OASR_GPU_GRAPHS=0"}, transcribe({at("a.wav")})).status, 0);
}

TEST_F(Machine, DoctorNamesABackendThatThisDeviceHasNot) {
  const Json found = finding({fake_driver("no_device"), "OASR_SCALED_MM_BACKEND=cublaslt"},
                             "OASR_SCALED_MM_BACKEND: 'cublaslt' runs on a GPU, and this is a CPU");
  EXPECT_TRUE(found.is_object());
}

TEST_F(Machine, DoctorJudgesTheFolderThatTheCacheWouldBeMadeIn) {
  std::ofstream(at("file")) << "no folder\n";
  const std::string variable = "OASR_CACHE_DIR=", says = "the cache folder can not be";
  for (const std::string& path : {at("file"), at("file") + "/cache"}) {
    const Json found = finding({variable + path}, says);
    ASSERT_TRUE(found.is_object()) << path;
    EXPECT_TRUE(found["problem"].get<bool>());
  }
  EXPECT_TRUE(finding({variable + "a_folder_that_is_not_there/cache"}, says).is_null()) << "of the working folder";
}

// A disk without space, as the root of /proc says of itself, is found though there are no models in the cache.
TEST_F(Machine, DoctorFindsAFullDiskOfAnEmptyCache) {
  const Json found = finding({"OASR_CACHE_DIR=/proc"}, "less than 500 MiB are free");
  ASSERT_TRUE(found.is_object());
  EXPECT_TRUE(found["problem"].get<bool>());
}

TEST_F(Machine, ATerminalThatGoesAwayStopsCleanlyUnlessThatIsIgnored) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  const auto after_hangup = [&](bool ignored) {
    const std::string command = std::string(ignored ? "trap '' HUP; " : "") + "exec " + OASR_BINARY + " transcribe -m " + model_ + " --device cpu " + at("pipe");
    Process process({"-c", command}, folder_.path(), {}, "/dev/null", {}, "/bin/sh");
    const int writer = ::open(at("pipe").c_str(), O_WRONLY);  // until the program reads
    ::kill(process.pid(), SIGHUP);
    const std::string audio = ignored ? contents(at("a.wav")) : std::string();
    EXPECT_EQ(::write(writer, audio.data(), audio.size()), static_cast<ssize_t>(audio.size()));
    if (ignored) ::close(writer);
    const auto outcome = process.wait();
    if (!ignored) ::close(writer);
    return outcome;
  };
  const auto stopped = after_hangup(false);
  EXPECT_EQ(stopped.status, 129);
  EXPECT_NE(stopped.err.find("stopped before the end"), std::string::npos) << stopped.err;
  EXPECT_EQ(after_hangup(true).status, 0);
}

// Limits of open files are a property of the process: a shell sets them for the program.
TEST_F(Machine, ABatchOfMoreFilesThanMayBeOpenIsTranscribed) {
  std::string inputs;
  for (int i = 0; i < 48; ++i) {
    const std::string name = "r" + std::to_string(100 + i);
    fs::create_symlink(at("a.wav"), at(name + ".wav"));
    inputs += " " + at(name + ".wav");
  }
  const std::string command = std::string("ulimit -n 16 && exec ") + OASR_BINARY + " transcribe -m " + model_ +
                              " --device cpu --batch-size 48 -o " + at("out") + inputs;
  const auto outcome = Process({"-c", command}, folder_.path(), {}, "/dev/null", {}, "/bin/sh").wait();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto text = contents(at("out") + "/r100.txt");
  EXPECT_FALSE(text.empty());
  EXPECT_EQ(contents(at("out") + "/r147.txt"), text);
}

// One that was removed is made again; another file may have its name, or its disk may be gone.
TEST_F(Machine, AFolderThatGoesAwayFailsTheInputsThatAreLeft) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  Process process(transcribe({at("a.wav"), at("pipe"), "-o", at("out")}), folder_.path());
  for (int i = 0; i < 600 && !fs::exists(at("out") + "/a.txt"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  ASSERT_TRUE(fs::exists(at("out") + "/a.txt"));
  fs::remove_all(at("out"));
  std::ofstream(at("out")) << "in its place";
  std::ofstream(at("pipe"), std::ios::binary) << contents(at("a.wav"));
  const auto outcome = process.wait();
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_NE(outcome.err.find(at("out")), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("1 transcribed, 1 failed"), std::string::npos) << outcome.err;
}

TEST_F(Machine, BenchKernelsNamesItsOwnHelpAndNoFolderThatIsNotThere) {
  const auto unknown = run({"bench", "kernels", "--nonsense"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("oasr bench kernels --help lists the options"), std::string::npos) << unknown.err;
  EXPECT_NE(run({"bench", "--nonsense"}).err.find("oasr bench --help lists"), std::string::npos);
  for (const auto& [output, says] : {std::pair<std::string, const char*>{at("results"), "is no folder that is there"},
                                     {at("results") + "/x.json", "there is no folder"}}) {
    const auto outcome = run({"bench", "kernels", "--op=norm", "--shapes=4x64", "--repeat=1", "-o", output});
    EXPECT_EQ(outcome.status, 2) << output;
    EXPECT_NE(outcome.err.find(says), std::string::npos) << outcome.err;
    EXPECT_TRUE(outcome.out.empty()) << "measured first";
    EXPECT_FALSE(fs::exists(at("results")));
  }
  EXPECT_EQ(run({"bench", "kernels", "--op=norm", "--shapes=4x64", "--repeat=1", "-o", at("x.json")}).status, 0);
  EXPECT_TRUE(fs::is_regular_file(at("x.json")));
}

}  // namespace
}  // namespace oasr
