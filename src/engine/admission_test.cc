#include "engine/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "engine/engine_fixture.h"

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
  EXPECT_THAT(indices(admission.next(2)), ElementsAre(2, 3));
  EXPECT_THAT(told_, ElementsAre("0: no such file", "1: no such file"));
  EXPECT_THAT(indices(admission.next(1)), ElementsAre(5));
  EXPECT_THAT(indices(admission.next(5)), ElementsAre(6));
  EXPECT_THAT(indices(admission.next(5)), ElementsAre());
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
  EXPECT_THAT(indices(admission.next(4)), ElementsAre(0, 1, 2, 3));
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
  EXPECT_THAT(indices(admission.next(1)), ElementsAre(0));
  stop = true;
  EXPECT_THAT(indices(admission.next(3)), ElementsAre());
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
  EXPECT_THAT(indices(admission.next(5)), ElementsAre(0));
  EXPECT_EQ(opened, 2);
}

}  // namespace
}  // namespace oasr::engine
