#include "cli/kernel_shapes.h"

#include <gtest/gtest.h>

namespace oasr::cli {
namespace {

std::string error_of(std::string_view text) {
  const auto shapes = parse_kernel_shapes(text);
  return shapes ? "taken" : shapes.error().what;
}

TEST(KernelShapes, AreProductsOrRows) {
  const auto shapes = parse_kernel_shapes("1500x2048x512,64x4096,1x1x999999999");
  ASSERT_TRUE(shapes);
  ASSERT_EQ(shapes->size(), 3u);
  EXPECT_EQ((*shapes)[0].m, 1500);
  EXPECT_EQ((*shapes)[0].n, 2048);
  EXPECT_EQ((*shapes)[0].k, 512);
  EXPECT_EQ((*shapes)[1].m, 64);
  EXPECT_EQ((*shapes)[1].n, 0);
  EXPECT_EQ((*shapes)[1].k, 4096);
  EXPECT_EQ((*shapes)[2].k, 999'999'999);
}

TEST(KernelShapes, WhatIsNoneIsRefusedWithThePlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "the end at position 1"},
      {"1500", "the end at position 5"},
      {"1500x", "the end at position 6"},
      {"x2x3", "'x' at position 1"},
      {"15 00x2", "' ' at position 3"},
      {" 1x2", "' ' at position 1"},
      {"1x2x3x4", "'x' at position 6"},
      {"1x2x3,", "the end at position 7"},
      {"1x2,,3x4", "',' at position 5"},
      {"1x2;3x4", "';' at position 4"},
      {"-1x2", "'-' at position 1"},
      {"+1x2", "'+' at position 1"},
      {"1x0x3", "'0' at position 3"},
      {"1x00", "'0' at position 3"},
      {"0x1f", "'0' at position 1"},
      {"1x1234567890", "'0' at position 12"},
      {"1X2", "'X' at position 2"},
      {"1x2.5", "'.' at position 4"},
      {"1x2x3\n", "'\n' at position 6"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_EQ(error_of(text).rfind(message, 0), 0u) << text << ": " << error_of(text);
  }
  const auto error = parse_kernel_shapes("1x").error();
  EXPECT_EQ(error.where, "--shapes");
  EXPECT_NE(error.remedy.find("MxNxK"), std::string::npos);
}

}  // namespace
}  // namespace oasr::cli
