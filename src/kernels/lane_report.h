// The lanes that a contract test runs on this processor, as a line of its output.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "device/cpu.h"

namespace oasr::kernels {

// "lanes of linear: scalar, avx2; skipped, since this processor or system can not run them: avx512"
template <class Lane, class Supported = bool (*)(Isa)>
std::string lanes_text(std::string_view op, std::span<const Lane> lanes, Supported supported = isa_supported) {
  std::string run, skipped;
  for (const Lane& lane : lanes) {
    std::string& names = supported(lane.isa) ? run : skipped;
    names += (names.empty() ? "" : ", ") + std::string(lane.name);
  }
  std::string text = "lanes of " + std::string(op) + ": " + run;
  if (!skipped.empty()) text += "; skipped, since this processor or system can not run them: " + skipped;
  return text;
}

// Prints it before the first test of the program. A variable of namespace scope calls this; the table is read
// when tests run.
template <class Lane>
::testing::Environment* report_lanes(std::string_view op, std::span<const Lane> (*table)()) {
  class Report : public ::testing::Environment {
   public:
    Report(std::string_view name, std::span<const Lane> (*lanes)()) : op_(name), table_(lanes) {}
    void SetUp() override { std::printf("%s\n", lanes_text(op_, table_()).c_str()); }

   private:
    std::string op_;
    std::span<const Lane> (*table_)();
  };
  return ::testing::AddGlobalTestEnvironment(new Report(op, table));
}

}  // namespace oasr::kernels
