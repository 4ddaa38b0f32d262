#include "decode/ctc_prefix_beam.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/fs.h"
#include "base/json.h"
#include "decode/ctc_testing.h"
#include "decode/log_math.h"
#include "testing/allocations.h"
#include "testing/arrays.h"
#include "testing/paths.h"

namespace oasr::decode {
namespace {

CtcPrefixBeam search_of(const CtcBeamOptions& options) {
  auto search = CtcPrefixBeam::make(options);
  if (!search) throw std::runtime_error(search.error().message());
  return *std::move(search);
}

CtcBeamOptions beam_of(int vocabulary, int beam) {
  return {.vocabulary = vocabulary, .first_beam = beam, .second_beam = beam};
}

std::vector<CtcHypothesis> decode(const CtcRows& rows, const CtcBeamOptions& options) {
  CtcPrefixBeam search = search_of(options);
  search.accept(rows.reduced());
  return search.results();
}

std::vector<int> frames(const CtcHypothesis& hypothesis) {
  std::vector<int> all;
  for (const CtcToken& token : hypothesis.tokens) all.push_back(token.frame);
  return all;
}

// A sum of positive numbers in any order: below 2^-50 for each of the 3^7 alignments.
TEST(CtcPrefixBeam, AWideBeamGivesTheExactSumOverAllAlignments) {
  const CtcRows rows = random_rows(1, 7, 3, 2);
  const auto exact = enumerate(rows);
  const auto results = decode(rows, beam_of(3, 2000));
  ASSERT_EQ(results.size(), exact.size());
  for (const CtcHypothesis& hypothesis : results) {
    EXPECT_NEAR(hypothesis.score, exact.at(hypothesis.ids()), 2e-12);
  }
}

// Scores: each frame rounds three times at most at a size below 64 (2^-47), and so does the
// reference; an addition in the log domain adds below 1e-15.
void expect_reference(const Json& beam, const CtcRows& rows,
                      std::shared_ptr<const ContextGraph> context, const std::string& name) {
  CtcBeamOptions options = beam_of(rows.vocabulary, beam.at("beam"));
  options.context = std::move(context);
  const auto results = decode(rows, options);
  ASSERT_EQ(results.size(), beam.at("nbest").size()) << name;
  const double bound = rows.frames() * 6 * 0x1.0p-47;
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].ids(), beam.at("nbest")[i].get<std::vector<TokenId>>())
        << name << " " << i;
    EXPECT_NEAR(results[i].score, beam.at("scores")[i].get<double>(), bound) << name << " " << i;
    EXPECT_EQ(frames(results[i]), beam.at("times")[i].get<std::vector<int>>()) << name << " " << i;
  }
}

std::shared_ptr<const ContextGraph> context_of(const Json& beam, int vocabulary) {
  if (beam.at("phrases").empty()) return nullptr;
  std::vector<ContextPhrase> phrases;
  for (const Json& phrase : beam.at("phrases")) {
    phrases.push_back({phrase.get<std::vector<TokenId>>(), beam.at("weight").get<double>()});
  }
  return *ContextGraph::make(phrases, vocabulary, 0);
}

void compare_with_reference(const fs::path& arrays, const fs::path& golden) {
  const Json items = *parse_json(*read_text_file(golden), "golden");
  for (const Json& item : items) {
    const std::string id = item.at("id");
    const auto array = testing::read_array(arrays, id);
    const CtcRows rows{array.floats(), static_cast<int>(array.shape[1])};
    for (const Json& beam : item.at("beams")) {
      expect_reference(beam, rows, context_of(beam, rows.vocabulary),
                       id + " " + beam.dump().substr(0, 60));
    }
    if (!item.contains("greedy")) continue;
    CtcGreedy greedy;
    greedy.accept(rows.reduced());
    std::vector<TokenId> ids;
    for (const CtcToken& token : greedy.result().tokens) ids.push_back(token.id);
    EXPECT_EQ(ids, item.at("greedy").get<std::vector<TokenId>>()) << id;
  }
}

TEST(CtcPrefixBeam, GivesTheHypothesesScoresAndFramesOfWenetOnRealPosteriors) {
  compare_with_reference(testing::test_data("ctc/an4_log_probs.npz"),
                         testing::test_data("ctc/an4_search.json"));
}

TEST(CtcPrefixBeam, GivesTheHypothesesScoresAndFramesOfWenetOnItsGoldens) {
  OASR_REQUIRE_FULL_DATA();
  const auto folder = *testing::full_data() / "goldens/wenet_u2pp";
  const Json notes = *parse_json(*read_text_file(folder / "notes.json"), "notes");
  const auto array = testing::read_array(folder / "golden.safetensors", "ctc_logprobs.full");
  const auto lengths = testing::read_array(folder / "golden.safetensors", "encoder_lengths");
  const auto values = array.floats();
  const auto vocabulary = static_cast<int>(array.shape[2]);
  for (std::size_t i = 0; i < 2; ++i) {
    Json beam = notes.at("ctc_prefix_beam10")[i];
    beam["beam"] = 10;
    const auto begin = values.begin() + static_cast<long>(i) * array.shape[1] * vocabulary;
    const CtcRows rows{{begin, begin + static_cast<long>(lengths.values[i]) * vocabulary},
                       vocabulary};
    expect_reference(beam, rows, nullptr, "utterance " + std::to_string(i));
    CtcGreedy greedy;
    greedy.accept(rows.reduced());
    std::vector<TokenId> ids;
    for (const CtcToken& token : greedy.result().tokens) ids.push_back(token.id);
    EXPECT_EQ(ids, notes.at("ctc_greedy")[i].get<std::vector<TokenId>>());
  }
}

TEST(CtcPrefixBeam, ResultsDoNotDependOnThePieces) {
  const CtcRows rows = random_rows(5, 120, 40, 4, 3);
  const std::vector<ContextPhrase> phrases = {{{3, 4}, 2.0}, {{5}, 1.0}};
  CtcBeamOptions options = beam_of(40, 6);
  options.context = *ContextGraph::make(phrases, 40, 0);
  CtcPrefixBeam whole = search_of(options), pieces = search_of(options);
  whole.accept(rows.reduced());
  for (int t = 0; t < rows.frames();) {
    const int next = std::min(rows.frames(), t + 1 + (t * 7) % 5);
    pieces.accept(rows.reduced(t, next));
    (void)pieces.results();  // looking changes nothing
    t = next;
  }
  const auto a = whole.results(), b = pieces.results();
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].tokens, b[i].tokens);
    EXPECT_EQ(a[i].score, b[i].score);
  }
}

// A token that lasts into a frame where it is not among the likeliest is told of by the frame itself.
TEST(CtcPrefixBeam, ReadsNoMoreThanTheTokensOfItsBeam) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const CtcRows rows = random_rows(30 + seed, 80, 60, 4, 2);
    CtcBeamOptions options = beam_of(60, 3);
    if (seed % 2 == 1) options.blank_skip = 0.5;
    CtcPrefixBeam wide = search_of(options), narrow = search_of(options);
    wide.accept(rows.reduced());
    narrow.accept(rows.reduced(0, 33, 3));
    narrow.accept(rows.reduced(33, rows.frames(), 3));
    const auto a = wide.results(), b = narrow.results();
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].tokens, b[i].tokens);
      EXPECT_EQ(a[i].score, b[i].score);
    }
  }
}

TEST(CtcPrefixBeam, StartsAgainAfterReset) {
  const CtcRows rows = random_rows(6, 30, 9, 3);
  CtcPrefixBeam search = search_of(beam_of(9, 4));
  search.accept(rows.reduced());
  const auto first = search.results();
  search.reset();
  EXPECT_EQ(search.frames(), 0);
  EXPECT_TRUE(search.results().front().tokens.empty());
  search.accept(rows.reduced());
  EXPECT_EQ(search.results().front().tokens, first.front().tokens);
  EXPECT_EQ(search.results().front().score, first.front().score);
}

TEST(CtcPrefixBeam, StablePrefixBeginsAllHypothesesAndNeverShrinks) {
  const CtcRows rows = random_rows(7, 150, 12, 6);
  CtcPrefixBeam search = search_of(beam_of(12, 5));
  std::vector<TokenId> before;
  for (int t = 0; t < rows.frames(); ++t) {
    search.accept(rows.reduced(t, t + 1));
    const auto stable = search.stable_prefix();
    ASSERT_GE(stable.size(), before.size());
    EXPECT_TRUE(std::equal(before.begin(), before.end(), stable.begin()));
    bool longer = true;  // is there a common prefix that is longer?
    const auto results = search.results();
    for (const CtcHypothesis& hypothesis : results) {
      const auto ids = hypothesis.ids();
      ASSERT_GE(ids.size(), stable.size());
      EXPECT_TRUE(std::equal(stable.begin(), stable.end(), ids.begin()));
      const auto first = results.front().ids();
      longer = longer && ids.size() > stable.size() && first.size() > stable.size() &&
               ids[stable.size()] == first[stable.size()];
    }
    EXPECT_FALSE(longer && results.size() > 1);
    before = stable;
  }
  EXPECT_GT(before.size(), 10u);
}

TEST(CtcPrefixBeam, APhraseLiftsItsHypothesisAndAnUnfinishedOneIsTakenBack) {
  const CtcRows rows = rows_of({{.1, .5, .4, 0}, {.8, .1, .05, .05}, {.1, 0, .4, .5}});
  CtcBeamOptions options = beam_of(4, 10);
  EXPECT_EQ(decode(rows, options).front().ids(), (std::vector<TokenId>{1, 3}));
  const std::vector<ContextPhrase> phrases = {{{2, 3}, 1.0}, {{1, 3, 2}, 0.5}};
  options.context = *ContextGraph::make(phrases, 4, 0);
  const auto results = decode(rows, options);
  EXPECT_EQ(results[0].ids(), (std::vector<TokenId>{2, 3}));
  EXPECT_EQ(results[0].context_score, 2);
  EXPECT_EQ(results[0].score, results[0].ctc_score + 2);
  for (const CtcHypothesis& hypothesis : results) {
    if (hypothesis.ids() == std::vector<TokenId>{1, 3}) {
      EXPECT_EQ(hypothesis.context_score, 0);
    }
  }
}

TEST(CtcPrefixBeam, ASkippedFrameTakesOnlyTheBlank) {
  const CtcRows rows = rows_of({{.1, .9, 0}, {.98, .015, .005}, {.1, .85, .05}});
  CtcBeamOptions options = beam_of(3, 10);
  EXPECT_GT(decode(rows, options).size(), 5u);
  options.blank_skip = 0.95;
  const auto results = decode(rows, options);
  const auto same = decode(rows_of({{.1, .9, 0}, {.98, 0, 0}, {.1, .85, .05}}), beam_of(3, 10));
  ASSERT_EQ(results.size(), same.size());
  for (std::size_t i = 0; i < same.size(); ++i) {
    EXPECT_EQ(results[i].ids(), same[i].ids());
    EXPECT_EQ(results[i].score, same[i].score);
  }
  EXPECT_EQ(results.front().ids(), (std::vector<TokenId>{1, 1}));
}

TEST(CtcPrefixBeam, EqualScoresKeepLowerTokensFirst) {
  const CtcRows rows = rows_of({{.2, .2, .2, .2, .2}});
  const auto results = decode(rows, beam_of(5, 3));
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].ids(), std::vector<TokenId>{});
  EXPECT_EQ(results[1].ids(), std::vector<TokenId>{1});
  EXPECT_EQ(results[2].ids(), std::vector<TokenId>{2});
}

TEST(CtcPrefixBeam, AFrameWithoutPossibleTokensChangesNothing) {
  const CtcRows rows = rows_of({{.1, .9}, {0, 0}, {.5, .5}});
  CtcPrefixBeam search = search_of(beam_of(2, 4));
  search.accept(rows.reduced());
  EXPECT_EQ(search.frames(), 3);
  EXPECT_EQ(search.results().front().ids(), std::vector<TokenId>{1});
}

TEST(CtcPrefixBeam, ConfidenceIsTheGreatestPosteriorOfTheTokensFramesAndTheNext) {
  const CtcRows rows =
      rows_of({{.3, .6, .1}, {.1, .8, .1}, {.2, .7, .1}, {.9, .05, .05}, {.1, .1, .8}});
  const CtcHypothesis best = decode(rows, beam_of(3, 10)).front();
  ASSERT_EQ(best.ids(), (std::vector<TokenId>{1, 2}));
  EXPECT_EQ(frames(best), (std::vector<int>{2, 4}));
  EXPECT_NEAR(best.tokens[0].confidence, .8, 1e-7);  // float32 logs
  EXPECT_NEAR(best.tokens[1].confidence, .8, 1e-7);
}

TEST(CtcPrefixBeam, ConfidenceLooksOneFrameBeyondTheTokens) {
  const auto results = decode(rows_of({{.3, .36, .34}, {.0, .45, .55}}), beam_of(3, 10));
  const auto both = std::find_if(results.begin(), results.end(), [](const CtcHypothesis& found) {
    return found.ids() == std::vector<TokenId>{1, 2};
  });
  ASSERT_NE(both, results.end());
  EXPECT_NEAR(both->tokens[0].confidence, .45, 1e-7);  // float32 logs
  EXPECT_NEAR(both->tokens[1].confidence, .55, 1e-7);
  // Of a token that was not its frame's likeliest.
  const auto later = decode(rows_of({{.3, .36, .34}, {.0, .55, .45}}), beam_of(3, 10));
  const auto second = std::find_if(later.begin(), later.end(), [](const CtcHypothesis& found) {
    return found.ids() == std::vector<TokenId>{2, 1};
  });
  ASSERT_NE(second, later.end());
  EXPECT_NEAR(second->tokens[0].confidence, .45, 1e-7);
}

TEST(CtcPrefixBeam, CountsTheFramesSinceTheNewestToken) {
  CtcPrefixBeam search = search_of(beam_of(2, 4));
  search.accept(rows_of({{.9, .1}, {.8, .2}}).reduced());
  EXPECT_EQ(search.trailing_frames(), 2);
  search.accept(rows_of({{.1, .9}, {.1, .9}, {.9, .1}, {.8, .2}, {.9, .1}}).reduced());
  EXPECT_EQ(search.trailing_frames(), 3);
}

// Memory follows the number of tokens: once an utterance is through, another allocates nothing.
TEST(CtcPrefixBeam, AllocatesNothingOnceItHasGrown) {
  const CtcRows rows = random_rows(8, 400, 50, 5, 3);
  const std::vector<ContextPhrase> phrases = {{{3, 4, 5}, 1.0}};
  CtcBeamOptions options = beam_of(50, 10);
  options.context = *ContextGraph::make(phrases, 50, 0);
  CtcPrefixBeam search = search_of(options);
  const CtcReduced frames = rows.reduced();
  search.accept(frames);
  search.reset();
  const auto before = testing::allocations();
  search.accept(frames);
  EXPECT_EQ(testing::allocations(), before);
}

// Histories that no hypothesis has any more are used again, so silence costs no memory.
TEST(CtcPrefixBeam, SilenceOfAnyLengthAllocatesNothing) {
  const CtcRows rows = random_rows(9, 100, 20, 2, 30);
  CtcPrefixBeam search = search_of(beam_of(20, 10));
  const CtcReduced frames = rows.reduced();
  for (int i = 0; i < 3; ++i) search.accept(frames);
  const auto before = testing::allocations();
  for (int i = 0; i < 200; ++i) search.accept(frames);
  EXPECT_EQ(testing::allocations(), before);
}

TEST(CtcPrefixBeam, RefusesOptionsThatCanNotBe) {
  EXPECT_FALSE(CtcPrefixBeam::make({.vocabulary = 0}));
  EXPECT_FALSE(CtcPrefixBeam::make({.vocabulary = 5, .blank = 5}));
  EXPECT_FALSE(CtcPrefixBeam::make({.vocabulary = 5, .first_beam = 0}));
  EXPECT_FALSE(CtcPrefixBeam::make({.vocabulary = 5, .second_beam = 0}));
  EXPECT_FALSE(CtcPrefixBeam::make({.vocabulary = 5, .second_beam = 1 << 30}));
  EXPECT_FALSE(CtcPrefixBeam::make({.vocabulary = 5, .blank_skip = 0.0}));
  EXPECT_FALSE(CtcPrefixBeam::make({.vocabulary = 5, .blank_skip = 1.5}));
  EXPECT_TRUE(CtcPrefixBeam::make({.vocabulary = 5, .first_beam = 100}));
}

}  // namespace
}  // namespace oasr::decode
