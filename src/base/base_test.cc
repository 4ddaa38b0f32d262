#include <gtest/gtest.h>

#include <fstream>

#include "base/byte_reader.h"
#include "base/fs.h"
#include "base/json.h"
#include "testing/paths.h"

namespace oasr {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return unexpected(ErrorCode::invalid_argument, "is odd", "value", "give an even one");
  return value / 2;
}

Result<int> quarter(int value) {
  const int once = TRY(half(value));
  return half(once);
}

TEST(Result, TryReturnsTheErrorOfTheInnerCall) {
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_EQ(quarter(6).error().message(), "value: is odd (give an even one)");
}

TEST(ByteReader, RefusesReadsPastTheEndAndKeepsItsPlace) {
  const std::uint8_t bytes[] = {1, 2, 3, 4, 5};
  ByteReader reader(std::as_bytes(std::span(bytes)), "test");
  EXPECT_EQ(reader.read<std::uint32_t>().value(), 0x04030201u);
  EXPECT_FALSE(reader.read<std::uint16_t>());
  EXPECT_FALSE(reader.take(std::uint64_t{1} << 63));
  EXPECT_EQ(reader.read<std::uint8_t>().value(), 5);
}

TEST(AtomicFile, LeavesNothingWithoutACommit) {
  const testing::TemporaryFolder folder;
  {
    auto file = AtomicFile::create(folder.path() / "a").value();
    file.write("half").value();
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
  write_text_file(folder.path() / "a", "whole").value();
  EXPECT_EQ(read_text_file(folder.path() / "a").value(), "whole");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(Json, RefusesDeepNestingAndInvalidText) {
  EXPECT_FALSE(parse_json(std::string(100, '[') + std::string(100, ']'), "x"));
  EXPECT_FALSE(parse_json("{\"a\": 1", "x"));
  EXPECT_FALSE(parse_json("\"\xff\"", "x"));
  EXPECT_EQ(parse_json("{\"a\": \"[[[\"}", "x").value()["a"], "[[[");
}

}  // namespace
}  // namespace oasr
