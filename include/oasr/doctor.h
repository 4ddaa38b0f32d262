// What this machine offers to oasr, and what is wrong with it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace oasr {

struct Finding {
  bool problem = false;   // true: something fails or is slow; false: worth knowing
  std::string what;
  std::string remedy;
};

struct DoctorReport {
  // (name, value) rows in the order to show them, grouped: "processor", "threads", "memory", …
  struct Group {
    std::string name;
    std::vector<std::pair<std::string, std::string>> rows;
  };
  std::vector<Group> groups;
  std::vector<Finding> findings;
  bool healthy() const;   // no finding is a problem
};

// Looks at the processor, threads and cgroup quota, memory, GPU, libraries, cache and environment.
// Reads only; never touches the network.
DoctorReport doctor();

std::string to_json(const DoctorReport& report, int indent = 2);

}  // namespace oasr
