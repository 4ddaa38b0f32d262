// Where tests find their data.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace oasr::testing {

// The project's root folder.
std::filesystem::path project_dir();

// A small, freely licensed file that is checked in: tests/data/<name>. It must exist.
std::filesystem::path test_data(const std::filesystem::path& name);

// The full test data: OASR_TEST_DATA, else ../shared beside the project. Nothing if absent: skip
// the test visibly.
std::optional<std::filesystem::path> full_data();

// A folder of real Whisper weights of `name` in `format` (hf, ct2) or the file of it (openai-pt,
// ggml): below OASR_TEST_WEIGHTS, else <cache>/test-weights. Nothing if absent.
std::optional<std::filesystem::path> real_weights(const std::string& name, const std::string& format);

// A fresh folder, removed at the end of the object's life.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace oasr::testing

// Skips a test when the full data is not there.
#define OASR_REQUIRE_FULL_DATA()                                             \
  if (!::oasr::testing::full_data()) {                                       \
    GTEST_SKIP() << "the full test data is not here (set OASR_TEST_DATA)";    \
  }
