// Text files line by line, and all that is wrong with them in one error.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace oasr::eval {

struct Line {
  std::size_t number = 0;  // from 1
  std::string_view text;   // UTF-8, without its end
};

// Collects what is wrong with the lines of a file.
class Problems {
 public:
  explicit Problems(std::string file) : file_(std::move(file)) {}
  void add(std::size_t line, std::string what);
  bool any() const { return !found_.empty(); }
  // An invalid_argument error that names the first ones, or nothing.
  Status status(std::string remedy = {}) const;

 private:
  std::string file_;
  std::vector<std::string> found_;
};

// The lines that are not blank, of a file that is all UTF-8 (a byte order mark is skipped). Lines
// that are not go to `problems`. The lines borrow `text`.
std::vector<Line> split_lines(std::string_view text, Problems& problems);

// A regular file of at most 1 GiB.
Result<std::string> read_lines_file(const std::string& path);

// "'a', 'b', 'c' and 4 more"
std::string some_of(const std::vector<std::string>& names, std::size_t most = 5);

}  // namespace oasr::eval
