// Environment variables for the time of a test.
#pragma once

#include <cstdlib>
#include <string>
#include <utility>

namespace oasr::testing {

// Sets a variable that was not set, and removes it at the end of the object's life.
class Variable {
 public:
  Variable(std::string name, const char* value) : name_(std::move(name)) {
    ::setenv(name_.c_str(), value, 1);
  }
  ~Variable() { ::unsetenv(name_.c_str()); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  std::string name_;
};

}  // namespace oasr::testing
