#include "text/utf8.h"

#include <gtest/gtest.h>

#include <vector>

namespace oasr {
namespace {

// The well-formed sequences, from the definition of UTF-8: decode, then check range and length.
bool well_formed(const std::string& bytes) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const std::size_t size = bytes.size();
  for (std::size_t i = 1; i < size; ++i) {
    if ((at(i) & 0xC0) != 0x80) return false;
  }
  if (size == 1) return at(0) < 0x80;
  const unsigned lead_mask = 0xFFU << (7 - size) & 0xFF, lead_bits = 0xFFU << (8 - size) & 0xFF;
  if ((at(0) & lead_mask) != lead_bits) return false;
  unsigned long point = at(0) & (0x7FU >> size);
  for (std::size_t i = 1; i < size; ++i) point = point << 6 | (at(i) & 0x3F);
  const unsigned long smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  return point >= smallest[size] && point <= 0x10FFFF && !(point >= 0xD800 && point <= 0xDFFF);
}

// True if some bytes make a well-formed character of these.
bool could_become_one(const std::string& bytes) {
  if (bytes.size() >= 4) return false;
  for (const int next : {0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF}) {  // the ends of all allowed ranges
    const std::string longer = bytes + static_cast<char>(next);
    if (well_formed(longer) || could_become_one(longer)) return true;
  }
  return false;
}

void expect_right(const std::string& bytes) {
  // The longest prefix that is a character or the beginning of one; at least a byte.
  std::size_t size = 1;
  bool valid = false, unfinished = false;
  for (std::size_t n = 1; n <= bytes.size() && !valid; ++n) {
    const std::string front = bytes.substr(0, n);
    valid = well_formed(front);
    const bool begins = !valid && could_become_one(front);
    if (!valid && !begins) break;
    size = n;
    unfinished = begins && n == bytes.size();
  }
  const Utf8Sequence front = utf8_front(bytes);
  ASSERT_EQ(front.size, size) << testing::PrintToString(bytes);
  ASSERT_EQ(front.valid, valid);
  ASSERT_EQ(front.unfinished, unfinished);
}

TEST(Utf8Front, FollowsTheDefinitionForAllPairsOfBytes) {
  for (int a = 0; a < 256; ++a) {
    expect_right({static_cast<char>(a)});
    for (int b = 0; b < 256; ++b) expect_right({static_cast<char>(a), static_cast<char>(b)});
  }
}

TEST(Utf8Front, FollowsTheDefinitionForLongerSequences) {
  const std::vector<int> edges = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F,
                                  0xA0, 0xBF, 0xC0, 0xC2, 0xE0, 0xF0, 0xFF};
  for (int a = 0xC0; a < 256; ++a) {
    for (const int b : edges) {
      for (const int c : edges) {
        const std::string three = {static_cast<char>(a), static_cast<char>(b),
                                   static_cast<char>(c)};
        expect_right(three);
        for (const int d : edges) expect_right(three + static_cast<char>(d));
      }
    }
  }
}

TEST(Utf8Decode, GivesTheCodePoint) {
  EXPECT_EQ(utf8_decode("A"), U'A');
  EXPECT_EQ(utf8_decode("\xC3\xA9"), U'\u00E9');
  EXPECT_EQ(utf8_decode("\xE4\xB8\xAD"), U'\u4E2D');
  EXPECT_EQ(utf8_decode("\xF0\x9F\x91\x8D"), U'\U0001F44D');
}

TEST(ToValidUtf8, ReplacesEveryMaximalSubpartOnce) {
  const std::string r(kReplacementCharacter);
  EXPECT_EQ(to_valid_utf8("plain \xC3\xA9"), "plain \xC3\xA9");
  EXPECT_EQ(to_valid_utf8(""), "");
  // The example of the Unicode standard, section 3.9, and its tables of the same chapter.
  EXPECT_EQ(to_valid_utf8("a\xF1\x80\x80\xE1\x80\xC2"
                          "b\x80"
                          "c\x80\xBF"
                          "d"),
            "a" + r + r + r + "b" + r + "c" + r + r + "d");
  EXPECT_EQ(to_valid_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(to_valid_utf8("\xED\xA0\x80"), r + r + r);
  EXPECT_EQ(to_valid_utf8("end \xE4\xB8"), "end " + r);
}

TEST(Strip, TakesUnicodeSpacesAtBothEnds) {
  EXPECT_EQ(strip("\u3000 a b\u00A0\t\u2003"), "a b");
  EXPECT_EQ(strip("\u2003"), "");
  EXPECT_EQ(strip(""), "");
  EXPECT_EQ(strip("\u00E9"), "\u00E9");
  EXPECT_EQ(strip("\u200Ba\u200B"), "\u200Ba\u200B");  // no width, no space
}

TEST(Utf8Stream, GivesTheSameTextForAnyDivisionOfTheBytes) {
  const std::string bytes =
      "a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x91\x8D\xF0\x9F\xE4\xB8\xFF\x80z\xED\xA0\x80\xE1\x80\xC2"
      "b\xF4\x8F\xBF";
  const std::string whole = to_valid_utf8(bytes);
  for (unsigned cuts = 0; cuts < 4096; ++cuts) {
    Utf8Stream stream;
    std::string joined, part;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      part += bytes[i];
      if ((cuts >> (i % 12) & 1) == 0) continue;
      const std::string text = stream.push(part);
      EXPECT_EQ(to_valid_utf8(text), text);
      joined += text;
      part.clear();
    }
    joined += stream.push(part);
    joined += stream.finish();
    ASSERT_EQ(joined, whole) << cuts;
  }
}

TEST(Utf8Stream, HoldsBackAnUnfinishedCharacter) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("a\xE4\xB8"), "a");
  EXPECT_EQ(stream.push("\xAD"), "\xE4\xB8\xAD");
  EXPECT_EQ(stream.push("\xF0"), "");
  EXPECT_EQ(stream.finish(), kReplacementCharacter);
  EXPECT_EQ(stream.finish(), "");
}

}  // namespace
}  // namespace oasr
