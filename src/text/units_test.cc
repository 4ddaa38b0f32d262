#include "text/units.h"

#include <gtest/gtest.h>

namespace oasr {
namespace {

using Units = std::vector<std::string>;

std::string error_of(std::string_view text) {
  const auto units = read_units(text, "units.txt");
  return units ? "none" : units.error().message();
}

TEST(Units, ReadsLinesOfATokenAndItsId) {
  EXPECT_EQ(*read_units("<blank> 0\n▁A 1\n' 2\n", "t"), (Units{"<blank>", "▁A", "'"}));
  EXPECT_EQ(*read_units("b 1\na 0", "t"), (Units{"a", "b"}));
}

TEST(Units, LeavesGapsWhereIdsAreMissing) {
  EXPECT_EQ(*read_units("a 0\nb 3\n", "t"), (Units{"a", "", "", "b"}));
}

TEST(Units, PassesOverAByteOrderMarkCrlfTabsAndEmptyLines) {
  EXPECT_EQ(*read_units("\xEF\xBB\xBF"
                        "a 0\r\n\r\n  b\t1 \r\n\n",
                        "t"),
            (Units{"a", "b"}));
  EXPECT_EQ(*read_units("a b 0\n", "t"), (Units{"a b"}));
}

TEST(Units, RefusesWhatIsWrongWithItsLine) {
  EXPECT_NE(error_of("a 0\nb\n").find("line 2: there is no id"), std::string::npos);
  EXPECT_NE(error_of("a 0\nb x\n").find("line 2: 'x' is no id"), std::string::npos);
  EXPECT_NE(error_of("a -1\n").find("'-1' is no id"), std::string::npos);
  EXPECT_NE(error_of("a 0\n 1\n").find("line 2: there is no"), std::string::npos);
  EXPECT_NE(error_of("a 0\n\nb 0\n").find("line 3: the id 0 is that of line 1"), std::string::npos);
  EXPECT_NE(error_of("a 0\na 1\n").find("line 2: the token 'a' is that of line 1"),
            std::string::npos);
  EXPECT_NE(error_of("\xFF 0\n").find("line 1: the token is not UTF-8"), std::string::npos);
  EXPECT_NE(error_of("a 99999999\n").find("too large for"), std::string::npos);
  EXPECT_NE(error_of("a 99999999999999999999\n").find("is no id"), std::string::npos);
  EXPECT_NE(error_of("\n\n").find("no tokens"), std::string::npos);
  EXPECT_NE(error_of("").find("no tokens"), std::string::npos);
}

TEST(Units, KnowsBytesAndSpecialNames) {
  EXPECT_EQ(unit_byte("<0xE4>"), 0xE4);
  EXPECT_EQ(unit_byte("<0x00>"), 0);
  EXPECT_EQ(unit_byte("<0xG4>"), -1);
  EXPECT_EQ(unit_byte("<0x4>"), -1);
  EXPECT_TRUE(is_special_unit("<sos/eos>"));
  EXPECT_FALSE(is_special_unit("<a>"));
}

}  // namespace
}  // namespace oasr
