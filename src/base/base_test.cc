#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <future>

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

// The message of what refuses to read `path`. A reader that waits for the writer of a pipe fails the
// test and is let go.
template <class Read>
std::string refusal(const fs::path& path, Read read) {
  auto done = std::async(std::launch::async, [&] {
    const auto result = read(path);
    return result ? std::string("was read") : result.error().message();
  });
  if (done.wait_for(std::chrono::seconds(5)) == std::future_status::timeout) {
    ADD_FAILURE() << path << " is waited for";
    ::close(::open(path.c_str(), O_WRONLY | O_NONBLOCK));
  }
  return done.get();
}

TEST(ReadingFiles, IsRefusedForWhatIsNoRegularFile) {
  const testing::TemporaryFolder folder;
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink("pipe", folder.path() / "link");
  const auto expect = [](const fs::path& path, const std::string& kind) {
    const std::string message = path.string() + ": is not a regular file but " + kind;
    EXPECT_EQ(refusal(path, [](auto& p) { return read_text_file(p); }), message);
    EXPECT_EQ(refusal(path, [](auto& p) { return MappedFile::open(p); }), message);
  };
  expect(pipe, "a named pipe");
  expect(folder.path() / "link", "a named pipe");
  expect(folder.path(), "a folder");
  expect("/dev/zero", "a device");
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

TEST(AtomicFolder, AppearsWholeOrNotAtAll) {
  const testing::TemporaryFolder folder;
  {
    auto made = AtomicFolder::create(folder.path() / "a").value();
    write_text_file(made.temporary() / "file", "text").value();
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
  auto made = AtomicFolder::create(folder.path() / "a/").value();  // the same as "a"
  write_text_file(made.temporary() / "file", "text").value();
  EXPECT_FALSE(fs::exists(folder.path() / "a"));
  made.commit().value();
  EXPECT_EQ(read_text_file(folder.path() / "a" / "file").value(), "text");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(AtomicFolder, ReplacesNothingButAnEmptyFolder) {
  const testing::TemporaryFolder folder;
  const auto code = [&](const char* name) {
    auto made = AtomicFolder::create(folder.path() / name);
    return made ? std::nullopt : std::optional(made.error().code);
  };
  write_text_file(folder.path() / "file", "").value();
  fs::create_directories(folder.path() / "full" / "inner");
  fs::create_directory(folder.path() / "empty");
  fs::create_symlink("nowhere", folder.path() / "link");
  for (const char* name : {"file", "full", "full/", "link"}) {
    EXPECT_EQ(code(name), ErrorCode::invalid_argument) << name;
  }
  EXPECT_EQ(code("empty"), std::nullopt);
  EXPECT_EQ(code("file/below"), ErrorCode::io);
  EXPECT_EQ(code("nowhere/below"), ErrorCode::not_found);
}

TEST(AtomicFolder, DoesNotReplaceWhatCameMeanwhile) {
  const testing::TemporaryFolder folder;
  auto made = AtomicFolder::create(folder.path() / "a").value();
  fs::create_directories(folder.path() / "a" / "other");
  EXPECT_EQ(made.commit().error().code, ErrorCode::io);
  EXPECT_TRUE(fs::exists(folder.path() / "a" / "other"));
}

TEST(Json, FindsDuplicateKeysAtEveryLevel) {
  EXPECT_FALSE(has_duplicate_keys(R"({"a":{"a":1},"b":[{"a":1},{"a":2}]})"));
  EXPECT_TRUE(has_duplicate_keys(R"({"a":1,"b":2,"a":3})"));
  EXPECT_TRUE(has_duplicate_keys(R"({"b":[{"a":1,"\u0061":2}]})"));
}

TEST(Json, RefusesDeepNestingAndInvalidText) {
  EXPECT_FALSE(parse_json(std::string(100, '[') + std::string(100, ']'), "x"));
  EXPECT_FALSE(parse_json("{\"a\": 1", "x"));
  EXPECT_FALSE(parse_json("\"\xff\"", "x"));
  EXPECT_EQ(parse_json("{\"a\": \"[[[\"}", "x").value()["a"], "[[[");
}

}  // namespace
}  // namespace oasr
