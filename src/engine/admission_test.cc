#include "engine/admission.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "base/descriptors.h"
#include "base/fs.h"
#include "engine/engine_fixture.h"
#include "testing/paths.h"

namespace oasr::engine {
namespace {

using ::testing::ElementsAre;

class Admissions : public ::testing::Test {
 protected:
  Result<std::unique_ptr<AudioSource>> audio() {
    return std::unique_ptr<AudioSource>(std::make_unique<TestAudio>(std::vector<float>(16)));
  }
  static std::vector<std::size_t> indices(const std::vector<Admission::Opened>& opened) {
    std::vector<std::size_t> all;
    for (const Admission::Opened& one : opened) all.push_back(one.index);
    return all;
  }

  ThreadPool pool_{4};
  std::vector<std::string> told_;
  Transcriber::Done done_ = [this](std::size_t index, const Result<Transcript>& result) {
    told_.push_back(std::to_string(index) + (result ? "" : ": " + result.error().what));
  };
  InOrder results_{done_};
  Callbacks callbacks_;
};

TEST_F(Admissions, GivesWhatOpensInOrderAndTellsWhatDoesNot) {
  const Transcriber::OpenAudio open = [&](std::size_t i) -> Result<std::unique_ptr<AudioSource>> {
    if (i < 2 || i == 4) return unexpected(ErrorCode::not_found, "no such file");
    return audio();
  };
  Admission admission(7, open, callbacks_, pool_, results_);
  EXPECT_THAT(indices(admission.next(2, 0)), ElementsAre(2, 3));
  EXPECT_THAT(told_, ElementsAre("0: no such file", "1: no such file"));
  EXPECT_THAT(indices(admission.next(1, 2)), ElementsAre(5));
  EXPECT_THAT(indices(admission.next(5, 3)), ElementsAre(6));
  EXPECT_THAT(indices(admission.next(5, 4)), ElementsAre());
  for (const std::size_t index : {2, 3, 5, 6}) results_.add(index, Transcript{});
  EXPECT_THAT(told_, ElementsAre("0: no such file", "1: no such file", "2", "3", "4: no such file", "5", "6"));
}

TEST_F(Admissions, OpensSideBySide) {
  std::atomic<int> inside = 0;
  std::atomic<bool> met = false;
  const Transcriber::OpenAudio open = [&](std::size_t) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    if (++inside == 2) met = true;
    while (!met && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    --inside;
    return audio();
  };
  Admission admission(4, open, callbacks_, pool_, results_);
  EXPECT_THAT(indices(admission.next(4, 0)), ElementsAre(0, 1, 2, 3));
  EXPECT_TRUE(met) << "one after the other";
}

TEST_F(Admissions, OpensNoneOnceItIsCancelled) {
  int opened = 0;
  const Transcriber::OpenAudio open = [&](std::size_t) {
    ++opened;
    return audio();
  };
  bool stop = false;
  callbacks_.cancelled = [&] { return stop; };
  Admission admission(4, open, callbacks_, pool_, results_);
  EXPECT_THAT(indices(admission.next(1, 0)), ElementsAre(0));
  stop = true;
  EXPECT_THAT(indices(admission.next(3, 1)), ElementsAre());
  EXPECT_EQ(opened, 1);
  results_.add(0, Transcript{});
  const std::string cancelled = ": " + cancelled_error().what;
  EXPECT_THAT(told_, ElementsAre("0", "1" + cancelled, "2" + cancelled, "3" + cancelled));
}

TEST_F(Admissions, OpensNoOtherOnceOneHearsThatItIsCancelled) {
  ThreadPool one(1);
  int opened = 0;
  const Transcriber::OpenAudio open = [&](std::size_t i) -> Result<std::unique_ptr<AudioSource>> {
    ++opened;
    if (i == 1) return unexpected(cancelled_error());
    return audio();
  };
  Admission admission(5, open, callbacks_, one, results_);
  EXPECT_THAT(indices(admission.next(5, 0)), ElementsAre(0));
  EXPECT_EQ(opened, 2);
}

// A recording that gives something back when it is closed.
class HeldAudio final : public AudioSource {
 public:
  explicit HeldAudio(std::function<void()> give_back) : give_back_(std::move(give_back)) {}
  ~HeldAudio() override { give_back_(); }
  const AudioInfo& info() const override { return audio_.info(); }
  Result<std::size_t> read(std::span<float> out) override { return audio_.read(out); }
  const std::optional<std::string>& truncated() const override { return audio_.truncated(); }
  const std::vector<std::string>& warnings() const override { return audio_.warnings(); }
  Status rewind() override { return audio_.rewind(); }
  bool rewindable() const override { return audio_.rewindable(); }

 private:
  std::function<void()> give_back_;
  TestAudio audio_{std::vector<float>(16)};
};

// So many, of which every open recording has one.
class Descriptors {
 public:
  explicit Descriptors(int free) : free_(free) {}
  Result<std::unique_ptr<AudioSource>> open() {
    if (free_-- > 0) return std::unique_ptr<AudioSource>(std::make_unique<HeldAudio>([this] { ++free_; }));
    ++free_;
    return unexpected(ErrorCode::io, "too many open files", "", descriptor_remedy(EMFILE));
  }

 private:
  std::atomic<int> free_;
};

TEST_F(Admissions, OfWhatFindsNoDescriptorTheRestWaitsForThoseThatAreOpen) {
  Descriptors three(3);
  const Transcriber::OpenAudio open = [&](std::size_t i) -> Result<std::unique_ptr<AudioSource>> {
    if (i == 6) return unexpected(ErrorCode::io, "a broken disk");
    return three.open();
  };
  Admission admission(9, open, callbacks_, pool_, results_);
  std::vector<Admission::Opened> active = admission.next(8, 0);
  EXPECT_EQ(active.size(), 3u);
  EXPECT_THAT(indices(admission.next(5, 3)), ElementsAre()) << "none is free yet";
  for (std::size_t over = 0; over < 8; ++over) {
    ASSERT_FALSE(active.empty()) << "after " << over;
    results_.add(active.front().index, Transcript{});
    active.erase(active.begin());
    for (auto& one : admission.next(8 - active.size(), active.size())) active.push_back(std::move(one));
    EXPECT_LE(active.size(), 3u);
  }
  EXPECT_TRUE(active.empty());
  EXPECT_THAT(told_, ElementsAre("0", "1", "2", "3", "4", "5", "6: a broken disk", "7", "8"));
}

TEST_F(Admissions, WithoutAnyDescriptorAllAreToldSo) {
  Descriptors none(0);
  const Transcriber::OpenAudio open = [&](std::size_t) { return none.open(); };
  Admission admission(3, open, callbacks_, pool_, results_);
  EXPECT_THAT(indices(admission.next(8, 0)), ElementsAre());
  const std::string told = ": too many open files";
  EXPECT_THAT(told_, ElementsAre("0" + told, "1" + told, "2" + told));
}

TEST_F(Admissions, ThoseThatWaitForADescriptorAreCancelledToo) {
  Descriptors one(1);
  const Transcriber::OpenAudio open = [&](std::size_t) { return one.open(); };
  bool stop = false;
  callbacks_.cancelled = [&] { return stop; };
  Admission admission(4, open, callbacks_, pool_, results_);
  const std::vector<Admission::Opened> active = admission.next(3, 0);
  ASSERT_EQ(active.size(), 1u);
  stop = true;
  EXPECT_THAT(indices(admission.next(2, 1)), ElementsAre());
  results_.add(active[0].index, Transcript{});
  EXPECT_EQ(told_.size(), 4u);
}

TEST_F(Admissions, LeavesDescriptorsFreeForResults) {
  testing::TemporaryFolder folder;
  const Transcriber::OpenAudio open = [&](std::size_t) -> Result<std::unique_ptr<AudioSource>> {
    const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (file < 0) return unexpected(ErrorCode::io, "none is left", "", descriptor_remedy(errno));
    return std::unique_ptr<AudioSource>(std::make_unique<HeldAudio>([file] { ::close(file); }));
  };
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 40;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  Admission admission(64, open, callbacks_, pool_, results_);
  const std::vector<Admission::Opened> active = admission.next(64, 0);
  const auto written = write_text_file(folder.path() / "result.txt", "text");
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_GT(active.size(), 1u);
  EXPECT_LT(active.size(), 40u);
  EXPECT_TRUE(written.has_value()) << written.error().message();
  EXPECT_TRUE(told_.empty());
}

}  // namespace
}  // namespace oasr::engine
