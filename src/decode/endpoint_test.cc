#include "decode/endpoint.h"

#include <gtest/gtest.h>

#include <limits>

namespace oasr::decode {
namespace {

int fired(const UtteranceProgress& progress) {
  const auto endpoint = find_endpoint({}, progress);
  return endpoint ? endpoint->rule : 0;
}

TEST(Endpoint, SilenceAloneEndsAfterTheFirstRulesTime) {
  EXPECT_EQ(fired({false, 2.39, 2.39}), 0);
  EXPECT_EQ(fired({false, 2.4, 2.4}), 1);
}

TEST(Endpoint, SilenceAfterSpeechEndsSooner) {
  EXPECT_EQ(fired({true, 1.19, 5}), 0);
  EXPECT_EQ(fired({true, 1.2, 5}), 2);
  EXPECT_EQ(fired({false, 1.2, 5}), 0);
}

TEST(Endpoint, ALongUtteranceEndsWhateverItHolds) {
  EXPECT_EQ(fired({true, 0, 19.99}), 0);
  EXPECT_EQ(fired({true, 0, 20}), 3);
}

TEST(Endpoint, SaysWhichRuleFiredAndWhy) {
  EXPECT_EQ(find_endpoint({}, {true, 1.24, 5})->why,
            "rule 2: 1.24 s of silence after speech (1.2 s end an utterance)");
  EXPECT_EQ(find_endpoint({}, {false, 2.5, 5})->why,
            "rule 1: 2.50 s of silence (2.4 s end an utterance)");
  EXPECT_EQ(find_endpoint({}, {true, 0.1, 20.04})->why,
            "rule 3: the utterance is 20.04 s long (from 20 s on)");
  EXPECT_EQ(find_endpoint({{{true, 0.5, 3}}}, {true, 0.6, 4})->why,
            "rule 1: 0.60 s of silence after speech (0.5 s end an utterance) and the utterance is "
            "4.00 s long (from 3 s on)");
  EXPECT_EQ(find_endpoint({{{true, 0, 0}}}, {true, 0, 4})->why, "rule 1: something was recognised");
}

TEST(Endpoint, WithoutRulesAnUtteranceNeverEnds) {
  EXPECT_FALSE(find_endpoint({{}}, {true, 1e6, 1e6}));
}

TEST(Endpoint, CountsFramesAsSeconds) {
  const UtteranceProgress progress = progress_of(100, 25, true, 0.04);
  EXPECT_TRUE(progress.contains_nonsilence);
  EXPECT_EQ(progress.trailing_silence, 1);
  EXPECT_EQ(progress.length, 4);
}

TEST(Endpoint, RefusesRulesThatCanNotBe) {
  EXPECT_TRUE(check_endpoint_options({}));
  EXPECT_TRUE(check_endpoint_options({{{true, 0, 0}}}));
  EXPECT_FALSE(check_endpoint_options({{{false, 0, 0}}}));
  EXPECT_FALSE(check_endpoint_options({{{true, -1, 0}}}));
  EXPECT_FALSE(check_endpoint_options({{{true, 0, std::numeric_limits<double>::infinity()}}}));
  const auto refused = check_endpoint_options({{{true, 1, 0}, {false, 0, 0}}});
  EXPECT_EQ(refused.error().where, "endpoint rule 2");
}

}  // namespace
}  // namespace oasr::decode
