#include "api/pull.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "api/digest.h"
#include "api/download.h"
#include "api/test_server.h"
#include "testing/paths.h"

namespace oasr {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void put(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

// 300,000 bytes without a period.
std::string blob() {
  std::string text;
  for (std::uint32_t i = 0, x = 1; i < 300'000; ++i, x = x * 1664525 + 1013904223) {
    text += static_cast<char>(x >> 24);
  }
  return text;
}

std::string sha256_of(const std::string& text) {
  const testing::TemporaryFolder folder;
  put(folder.path() / "x", text);
  return *file_digest(folder.path() / "x", Digest::Kind::sha256);
}

// A catalogue of one model with one source of one file on the server.
class Pull : public ::testing::Test {
 protected:
  Pull() {
    ModelEntry model;
    model.name = "m";
    ModelSource source;
    source.kind = "openai";
    source.files = {{"m.pt", server_.url("/m.pt"), 0, {Digest::Kind::sha256, sha256_of(body_)}, {}}};
    model.sources = {source};
    catalogue_.models = {model};
    catalogue_.default_model = "m";
    server_.serve("/m.pt", {body_, {}, {}, 0, true, 0});
  }

  SourceFile& file() { return catalogue_.models[0].sources[0].files[0]; }
  ModelCache cache() const { return ModelCache(folder_.path()); }
  Result<fs::path> run(const PullOptions& options = {}, bool offline = false) {
    return pull({catalogue_, cache(), offline, true}, "m", options);
  }
  fs::path part() const { return cache().staging("m", "openai") / "m.pt.part"; }

  testing::TemporaryFolder folder_;
  testing::TestServer server_;
  const std::string body_ = blob();
  Catalogue catalogue_;
};

TEST_F(Pull, PlacesTheVerifiedFileAndRemovesTheStaging) {
  const auto path = run();
  ASSERT_TRUE(path) << path.error().message();
  EXPECT_EQ(*path, folder_.path() / "models" / "m" / "m.pt");
  EXPECT_EQ(contents(*path), body_);
  EXPECT_FALSE(fs::exists(folder_.path() / "partial" / "m"));
}

TEST_F(Pull, DoesNotAskTheServerForACachedModel) {
  ASSERT_TRUE(run());
  ASSERT_TRUE(run());
  EXPECT_EQ(server_.requests().size(), 1u);
}

TEST_F(Pull, ResumesWhereTheConnectionBroke) {
  server_.serve("/m.pt", {body_, {}, {}, 100'000, true, 0});
  ASSERT_FALSE(run());
  EXPECT_EQ(fs::file_size(part()), 100'000u);
  const auto path = run();
  ASSERT_TRUE(path) << path.error().message();
  EXPECT_EQ(contents(*path), body_);
  EXPECT_EQ(server_.requests().back(), "GET /m.pt bytes=100000-");
}

TEST_F(Pull, StartsOverWhenTheServerIgnoresTheRange) {
  put(part(), body_.substr(0, 5000));
  server_.serve("/m.pt", {body_, {}, {}, 0, false, 0});
  const auto path = run();
  ASSERT_TRUE(path) << path.error().message();
  EXPECT_EQ(contents(*path), body_);
}

TEST_F(Pull, StartsOverWhenTheResumedFileIsWrong) {
  put(part(), std::string(5000, 'x'));
  const auto path = run();
  ASSERT_TRUE(path) << path.error().message();
  EXPECT_EQ(contents(*path), body_);
  EXPECT_EQ(server_.requests(), (std::vector<std::string>{"GET /m.pt bytes=5000-", "GET /m.pt"}));
}

TEST_F(Pull, TakesACompletePartWithoutAnotherByte) {
  put(part(), body_);
  const auto path = run();
  ASSERT_TRUE(path) << path.error().message();
  EXPECT_EQ(contents(*path), body_);
}

TEST_F(Pull, RefusesAWrongDigestAndLeavesNothing) {
  auto wrong = body_;
  wrong[1234] ^= 1;
  server_.serve("/m.pt", {wrong, {}, {}, 0, true, 0});
  const auto path = run();
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().code, ErrorCode::network);
  EXPECT_NE(path.error().what.find("digest"), std::string::npos) << path.error().what;
  EXPECT_FALSE(fs::exists(folder_.path() / "models" / "m"));
  EXPECT_FALSE(fs::exists(part()));
}

TEST_F(Pull, TriesTheNextSourceAndListsEveryFailure) {
  auto other = catalogue_.models[0].sources[0];
  other.kind = "huggingface";
  other.files[0].url = server_.url("/other.pt");
  catalogue_.models[0].sources[0].files[0].url = server_.url("/gone.pt");
  catalogue_.models[0].sources.push_back(other);
  const auto failed = run();
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().what.find("openai: "), std::string::npos);
  EXPECT_NE(failed.error().what.find("/gone.pt"), std::string::npos);
  EXPECT_NE(failed.error().what.find("huggingface: "), std::string::npos);
  EXPECT_NE(failed.error().what.find("404"), std::string::npos);
  server_.serve("/other.pt", {body_, {}, {}, 0, true, 0});
  EXPECT_TRUE(run());
}

TEST_F(Pull, OnlyTheSourceAskedForIsTried) {
  PullOptions options;
  options.source = "packages";
  const auto path = run(options);
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().code, ErrorCode::invalid_argument);
  EXPECT_TRUE(server_.requests().empty());
  ASSERT_TRUE(run());
  EXPECT_FALSE(run(options)) << "a cached model hides a name that is no source";
}

TEST_F(Pull, OfflineNeverTouchesTheNetwork) {
  const auto path = run({}, true);
  ASSERT_FALSE(path);
  EXPECT_NE(path.error().what.find("OASR_OFFLINE"), std::string::npos);
  EXPECT_TRUE(server_.requests().empty());
  ASSERT_TRUE(run());
  EXPECT_TRUE(run({}, true));  // the cache serves offline
}

TEST_F(Pull, TwoAtOnceDownloadOnce) {
  server_.serve("/m.pt", {body_, {}, {}, 0, true, 200});
  Result<fs::path> first = unexpected(ErrorCode::internal, ""), second = first;
  std::thread one([&] { first = run(); });
  std::thread two([&] { second = run(); });
  one.join();
  two.join();
  ASSERT_TRUE(first) << first.error().message();
  ASSERT_TRUE(second) << second.error().message();
  EXPECT_EQ(server_.requests().size(), 1u);
}

TEST_F(Pull, StopsWhenCancelledAndKeepsThePart) {
  server_.serve("/m.pt", {body_, {}, {}, 0, true, 300});
  PullOptions options;
  options.cancelled = [] { return true; };
  const auto path = run(options);
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().code, ErrorCode::cancelled);
}

TEST_F(Pull, ReportsProgressUpToTheWholeFile) {
  std::uint64_t last = 0;
  PullOptions options;
  file().bytes = body_.size();
  options.progress = [&](const PullProgress& progress) {
    EXPECT_GE(progress.bytes_done, last);
    EXPECT_EQ(progress.bytes_total, body_.size());
    last = progress.bytes_done;
  };
  ASSERT_TRUE(run(options));
  EXPECT_EQ(last, body_.size());
}

TEST_F(Pull, AnIncompleteEntryIsPulledAgain) {
  const auto path = run();
  ASSERT_TRUE(path);
  fs::resize_file(*path, 10);
  EXPECT_FALSE(cache().find("m"));
  const auto again = run();
  ASSERT_TRUE(again);
  EXPECT_EQ(contents(*again), body_);
}

TEST_F(Pull, VerifyFindsAChangedByteAndRepairs) {
  const auto path = run();
  ASSERT_TRUE(path);
  auto damaged = body_;
  damaged[7] ^= 1;
  put(*path, damaged);
  ASSERT_TRUE(run());  // the size is right: not noticed without asking
  EXPECT_EQ(contents(*path), damaged);
  PullOptions options;
  options.verify = true;
  ASSERT_TRUE(run(options));
  EXPECT_EQ(contents(*path), body_);
}

TEST_F(Pull, AnUnpinnedFileMustHaveTheAnnouncedDigest) {
  file().digest = {};
  server_.serve("/m.pt", {body_, std::string(64, 'a'), {}, 0, true, 0});
  EXPECT_FALSE(run());
  server_.serve("/m.pt", {body_, sha256_of(body_), {}, 0, true, 0});
  EXPECT_TRUE(run());
}

TEST_F(Pull, NamesTheCatalogueForAnUnknownModel) {
  const auto path = pull({catalogue_, cache(), false, true}, "unknown", {});
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().code, ErrorCode::not_found);
  EXPECT_NE(path.error().remedy.find("m"), std::string::npos);
}

TEST_F(Pull, TellsAFolderThatCanNotBeWritten) {
  put(folder_.path() / "file", "");
  const auto path = pull({catalogue_, ModelCache(folder_.path() / "file"), false, true}, "m", {});
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().code, ErrorCode::io);
}

TEST(Download, RefusesPlainHttpOutsideTests) {
  testing::TestServer server;
  server.serve("/x", {"x", {}, {}, 0, true, 0});
  const testing::TemporaryFolder folder;
  const auto result = download_file({server.url("/x"), folder.path() / "x", 0, false, {}, {}});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::network);
  EXPECT_TRUE(server.requests().empty());
}

TEST(Download, FollowsFewRedirectsOnly) {
  testing::TestServer server;
  server.serve("/loop", {{}, {}, server.url("/loop"), 0, true, 0});
  const testing::TemporaryFolder folder;
  const auto result = download_file({server.url("/loop"), folder.path() / "x", 0, true, {}, {}});
  ASSERT_FALSE(result);
  EXPECT_EQ(server.requests().size(), 6u);
}

TEST(Download, TakesTheDigestOfTheFirstHop) {
  testing::TestServer server;
  const std::string digest(40, 'b');
  server.serve("/a", {{}, digest, server.url("/b"), 0, true, 0});
  server.serve("/b", {"x", "\"storage\"", {}, 0, true, 0});
  const testing::TemporaryFolder folder;
  const auto result = download_file({server.url("/a"), folder.path() / "x", 0, true, {}, {}});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(result->announced.kind, Digest::Kind::git_sha1);
  EXPECT_EQ(result->announced.hex, digest);
}

TEST(Download, TellsAFileThatIsShorterThanItShouldBe) {
  testing::TestServer server;
  server.serve("/x", {"abc", {}, {}, 0, true, 0});
  const testing::TemporaryFolder folder;
  const auto result = download_file({server.url("/x"), folder.path() / "x", 5, true, {}, {}});
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().what.find("3 bytes of 5"), std::string::npos);
}

TEST(FileDigest, IsSha256OrTheGitBlobsSha1) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "abc";
  put(path, "abc");
  EXPECT_EQ(*file_digest(path, Digest::Kind::sha256),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(*file_digest(path, Digest::Kind::git_sha1), "f2ba8f84ab5c1bce84a7b441cb1959cfc7093b7f");
}

TEST(FileDigest, NamesBothDigestsWhenTheyDiffer) {
  const testing::TemporaryFolder folder;
  put(folder.path() / "abc", "abd");
  const auto status = check_digest(folder.path() / "abc", {Digest::Kind::sha256, "00"});
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().what.find("expected 00"), std::string::npos);
}

}  // namespace
}  // namespace oasr
