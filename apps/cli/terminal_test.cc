#include "cli/terminal.h"

#include <gtest/gtest.h>

namespace oasr::cli {
namespace {

TEST(Escaped, ControlCharactersAreShown) {
  EXPECT_EQ(escaped("a\x1b[2J\r\x7f\tb\n"), "a\\x1b[2J\\x0d\\x7f\\x09b\\x0a");
  EXPECT_EQ(escaped(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(escaped("\xc2\x9b" "31m"), "\\x9b31m");  // U+009B, the CSI of C1
}

TEST(Escaped, LineEndsAndTabsStayInLines) { EXPECT_EQ(escaped("a\n\tb\r", true), "a\n\tb\\x0d"); }

TEST(Escaped, TextOfEveryLanguageStays) {
  const std::string text = "Gr\u00fc\u00dfe, \u65e5\u672c\u8a9e, \u00a0 \U0001f600";
  EXPECT_EQ(escaped(text), text);
}

TEST(Escaped, BytesThatAreNotUtf8AreShown) {
  EXPECT_EQ(escaped("a\x9b" "b"), "a\\x9bb");
  EXPECT_EQ(escaped("\xe6\x97"), "\\xe6\\x97");
  EXPECT_EQ(escaped("\xc2"), "\\xc2");
}

}  // namespace
}  // namespace oasr::cli
