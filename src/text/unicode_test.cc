#include "text/unicode.h"

#include <gtest/gtest.h>

namespace oasr {
namespace {

TEST(Unicode, Utf32AndBackIsTheText) {
  const std::string text = "a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80";
  EXPECT_EQ(to_utf32(text).size(), 4u);
  EXPECT_EQ(to_utf8(to_utf32(text)), text);
  EXPECT_EQ(to_utf32("a\xFF"), U"a\uFFFD");
}

TEST(Unicode, LowerCaseKnowsTheFinalSigma) {
  EXPECT_EQ(lower(U"ΟΔΟΣ ΣΑΣ Σ"), U"οδος σας σ");
  EXPECT_EQ(lower(U"ΟΔΟΣ's"), U"οδοσ's");  // an apostrophe does not end the word
  EXPECT_EQ(lower(U"ÀÉ İ"), U"àé i\u0307");
}

TEST(Unicode, DigitsOfAnyScriptHaveTheirValue) {
  EXPECT_EQ(decimal_value(U'7'), 7);
  EXPECT_EQ(decimal_value(U'٣'), 3);           // Arabic-Indic
  EXPECT_EQ(decimal_value(U'９'), 9);          // full width
  EXPECT_EQ(decimal_value(U'\U0001D7D9'), 1);  // double-struck, behind the bold ones
  EXPECT_TRUE(is_decimal(U'٣'));
  EXPECT_FALSE(is_decimal(U'²'));
  EXPECT_TRUE(is_word_character(U'²'));
}

TEST(Unicode, NormalFormsDecomposeAndCompose) {
  EXPECT_EQ(nfkd(U"é ﬁ ４"), U"e\u0301 fi 4");
  EXPECT_EQ(nfkc(U"e\u0301 ﬁ"), U"é fi");
  EXPECT_EQ(nfkd(U"\uFDFA").size(), 18u);  // the longest there is
  EXPECT_EQ(upper(U"straße"), U"STRASSE");
}

}  // namespace
}  // namespace oasr
