// A fresh folder with files for a test, removed at the end of the object's life.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "testing/paths.h"

namespace oasr::testing {

class TestFiles {
 public:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string write(const std::string& name, std::string_view text) const {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    std::ofstream(folder_.path() / name, std::ios::binary) << text;
    return path(name);
  }
  std::string read(const std::string& name) const {
    std::ifstream file(folder_.path() / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace oasr::testing
