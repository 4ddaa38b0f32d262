// For tests: the program run as its users run it, with its outputs in files.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "testing/paths.h"

namespace oasr {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;
using Json = nlohmann::json;

inline std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Outcome {
  int status = -1;
  std::string out, err;
};

// A started `oasr` with its output in files. `variables` ("OASR_ISA=avx2") are its only ones of oasr's
// beside an empty cache and OASR_OFFLINE, and replace others of their name; `program` is what is started.
class Process {
 public:
  Process(Words words, const fs::path& folder, const std::string& out = {},
          const std::string& in = "/dev/null", Words variables = {}, const std::string& program = OASR_BINARY)
      : folder_(folder), out_(out.empty() ? (folder / "stdout").string() : out) {
    words.insert(words.begin(), program);
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const auto err = (folder / "stderr").string();
    const auto cache = "OASR_CACHE_DIR=" + (folder / "cache").string();
    std::vector<char*> environment;
    for (char** variable = environ; *variable != nullptr; ++variable) {
      const std::string_view all = *variable, name = all.substr(0, all.find('=') + 1);
      const bool replaced = std::any_of(variables.begin(), variables.end(),
                                        [&](const std::string& own) { return own.starts_with(name); });
      if (!name.starts_with("OASR_") && !replaced) environment.push_back(*variable);
    }
    for (auto& variable : variables) environment.push_back(variable.data());  // the first of a name counts
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
inline void write_wav(const fs::path& path, const std::vector<std::int16_t>& samples,
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

// Runs in a folder of its own.
class CommandLine : public ::testing::Test {
 protected:
  Outcome run(const Words& words, const std::string& out = {}, const std::string& in = "/dev/null") {
    return Process(words, folder_.path(), out, in).wait();
  }
  std::string at(const std::string& name) const { return (folder_.path() / name).string(); }

  testing::TemporaryFolder folder_;
};

}  // namespace oasr
