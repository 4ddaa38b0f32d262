#include "checkpoint/zip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/test_files.h"

namespace oasr {
namespace {

using testing::as_bytes;
using ::testing::HasSubstr;
using testing::zip_file;
using testing::ZipMember;

std::string many(std::size_t size) {
  std::string text(size, 'x');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 2654435761u >> 13);
  return text;
}

std::string refusal(const std::string& file) {
  auto archive = ZipArchive::open(as_bytes(file), "x.zip");
  if (!archive) return archive.error().message();
  for (const auto& entry : archive->entries()) {
    auto text = archive->extract(entry, 1 << 20);
    if (!text) return text.error().message();
  }
  return "";
}

TEST(Zip, ReadsStoredDeflatedAndZip64Entries) {
  const auto large = many(300'000);
  const auto file = zip_file({{.name = "a/stored", .content = "hello"},
                              {.name = "a/deflated", .content = large, .deflate = true},
                              {.name = "a/", .content = ""},
                              {.name = "a/big", .content = large, .zip64 = true}},
                             "a comment");
  auto archive = ZipArchive::open(as_bytes(file), "x.zip");
  ASSERT_TRUE(archive) << archive.error().message();
  ASSERT_EQ(archive->entries().size(), 4u);
  EXPECT_EQ(*archive->extract(*archive->find("a/stored"), 5), "hello");
  EXPECT_EQ(*archive->extract(*archive->find("a/deflated"), 1 << 20), large);
  EXPECT_EQ(*archive->extract(*archive->find("a/big"), 1 << 20), large);
  EXPECT_EQ(archive->find("a"), nullptr);
  EXPECT_EQ(archive->in_place(*archive->find("a/stored"))->size(), 5u);
  EXPECT_EQ(archive->in_place(*archive->find("a/deflated")).error().code, ErrorCode::unsupported);
}

TEST(Zip, EnforcesTheSizeLimitWhateverTheDirectoryClaims) {
  const std::string zeros(10 << 20, '\0');  // deflates to about 10 kB
  const auto honest = zip_file({{.name = "bomb", .content = zeros, .deflate = true}});
  EXPECT_THAT(refusal(honest), HasSubstr("larger than 1048576 bytes"));
  const auto liar = zip_file(
      {{.name = "bomb", .content = zeros, .deflate = true, .size_error = 100 - (10 << 20)}});
  EXPECT_THAT(refusal(liar), HasSubstr("larger than the directory says"));
  const auto short_one =
      zip_file({{.name = "a", .content = "abc", .deflate = true, .size_error = 1}});
  EXPECT_THAT(refusal(short_one), HasSubstr("smaller than the directory says"));
}

TEST(Zip, RefusesAWrongChecksum) {
  EXPECT_THAT(refusal(zip_file({{.name = "a", .content = "abc", .crc_error = 1}})),
              HasSubstr("wrong CRC-32"));
  EXPECT_THAT(refusal(zip_file({{.name = "a", .content = "abc", .deflate = true, .crc_error = 1}})),
              HasSubstr("wrong CRC-32"));
}

TEST(Zip, RefusesHostileDirectories) {
  EXPECT_THAT(refusal(zip_file({{.name = "a", .content = "1"}, {.name = "a", .content = "2"}})),
              HasSubstr("'a' appears twice"));
  for (const char* name : {"/etc/passwd", "a/../../b", "..", "./a", "a//b"}) {
    EXPECT_THAT(refusal(zip_file({{.name = name, .content = "1"}})), HasSubstr("path")) << name;
  }
  EXPECT_THAT(refusal(zip_file({{.name = "a\\b", .content = "1"}})), HasSubstr("backslash"));
  EXPECT_THAT(refusal(zip_file({{.name = "", .content = "1"}})), HasSubstr("without a name"));
  EXPECT_THAT(refusal(zip_file({{.name = "a", .content = "1", .flags = 1}})),
              HasSubstr("encrypted"));
  EXPECT_THAT(refusal(zip_file({{.name = "a", .content = "1", .method = 12}})),
              HasSubstr("method 12"));
  EXPECT_THAT(refusal(zip_file({{.name = "a", .content = "1", .local_name = "b"}})),
              HasSubstr("disagrees"));
  EXPECT_THAT(refusal(zip_file({{.name = "a", .content = "1", .size_error = 1}})),
              HasSubstr("two different sizes"));
  EXPECT_THAT(refusal("prefix" + zip_file({{.name = "a", .content = "1"}})),
              HasSubstr("not where"));
}

TEST(Zip, RefusesEntriesThatShareBytes) {
  // Two directory records that point at one local header.
  auto file =
      zip_file({{.name = "a", .content = "1"}, {.name = "b", .content = "2", .local_name = "a"}});
  const auto second = file.rfind("PK\1\2");
  file.replace(second + 42, 4, testing::le<std::uint32_t>(0));
  EXPECT_NE(refusal(file), "");
  file[second + 46] = 'a';  // the same name as well: still refused
  EXPECT_THAT(refusal(file), HasSubstr("overlaps"));
}

TEST(Zip, RefusesEveryTruncation) {
  for (const bool zip64 : {false, true}) {
    const auto file =
        zip_file({{.name = "a", .content = many(40), .zip64 = zip64},
                  {.name = "b", .content = many(90), .deflate = true, .zip64 = zip64}});
    ASSERT_EQ(refusal(file), "");
    for (std::size_t size = 0; size < file.size(); ++size) {
      EXPECT_NE(refusal(file.substr(0, size)), "") << size;
    }
  }
}

TEST(Zip, SurvivesEveryByteMutation) {
  const auto file = zip_file({{.name = "a", .content = many(40), .zip64 = true},
                              {.name = "b", .content = many(90), .deflate = true}});
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xFF}) {
      auto changed = file;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      (void)refusal(changed);  // no crash, no sanitizer finding
    }
  }
}

TEST(Zip, StopsWhenTheSinkFails) {
  const auto file = zip_file({{.name = "a", .content = many(3 << 20)}});
  const auto archive = *ZipArchive::open(as_bytes(file), "x.zip");
  int pieces = 0;
  const auto status = archive.extract(archive.entries()[0], 1 << 30, [&](auto) -> Status {
    ++pieces;
    return unexpected(ErrorCode::io, "disk full");
  });
  EXPECT_EQ(status.error().what, "disk full");
  EXPECT_EQ(pieces, 1);
}

}  // namespace
}  // namespace oasr
