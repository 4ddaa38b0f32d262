#include "testing/paths.h"

#include <cstdlib>

#include "base/check.h"
#include "base/env.h"

namespace oasr::testing {

namespace fs = std::filesystem;

fs::path project_dir() { return OASR_PROJECT_DIR; }

fs::path test_data(const fs::path& name) {
  auto path = project_dir() / "tests" / "data" / name;
  CHECK(fs::exists(path), "test data is missing: " + path.string());
  return path;
}

std::optional<fs::path> full_data() {
  if (const auto given = env("OASR_TEST_DATA")) return fs::path(*given);
  auto beside = project_dir().parent_path() / "shared";
  if (fs::exists(beside / "data" / "README.md")) return beside;
  return std::nullopt;
}

std::optional<fs::path> real_weights(const std::string& name, const std::string& format) {
  fs::path root;
  if (const auto given = env("OASR_TEST_WEIGHTS")) {
    root = *given;
  } else if (const auto cache = env("OASR_CACHE_DIR")) {
    root = fs::path(*cache) / "test-weights";
  } else {
    root = fs::path(env("HOME").value_or("/")) / ".cache" / "oasr" / "test-weights";
  }
  auto path = root / name;
  if (format == "openai-pt") {
    path /= name + ".pt";
  } else if (format == "ggml") {
    path /= "ggml-" + name + ".bin";
  } else {
    path /= format;
  }
  if (!fs::exists(path)) return std::nullopt;
  return path;
}

TemporaryFolder::TemporaryFolder() {
  auto name = (fs::temp_directory_path() / "oasr-test-XXXXXX").string();
  CHECK(::mkdtemp(name.data()) != nullptr, "can not create a temporary folder");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace oasr::testing
