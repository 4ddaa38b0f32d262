#include "text/characters.h"

#include <gtest/gtest.h>

namespace oasr {
namespace {

TEST(Characters, ScriptsWithoutSpacesAreHanKanaAndHangul) {
  for (const char32_t point :
       {U'你', U'々', U'ひ', U'カ', U'ｶ', U'한', U'ᄒ', U'㐀', U'豈', U'𠀀'}) {
    EXPECT_TRUE(is_written_without_spaces(point)) << std::hex << static_cast<unsigned>(point);
  }
  for (const char32_t point : {U'a', U'é', U'。', U'、', U'！', U'я', U'ก', U'0', U'０', U' '}) {
    EXPECT_FALSE(is_written_without_spaces(point)) << std::hex << static_cast<unsigned>(point);
  }
}

TEST(Characters, WhiteSpaceIsPythons) {
  for (const char32_t point : {U' ', U'\t', U'\n', U'\x1C', U'\u00A0', U'\u3000'}) {
    EXPECT_TRUE(is_space(point));
  }
  for (const char32_t point : {U'a', U'\u200B', U'\u2581'}) EXPECT_FALSE(is_space(point));
}

}  // namespace
}  // namespace oasr
