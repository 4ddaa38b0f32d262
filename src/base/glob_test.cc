#include "base/glob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace oasr {
namespace {

using ::testing::Optional;

TEST(Glob, MatchesTheWholePath) {
  EXPECT_TRUE(matches_glob("a.b", "a.b"));
  EXPECT_FALSE(matches_glob("a.b", "a.bc"));
  EXPECT_FALSE(matches_glob("a.bc", "a.b"));
  EXPECT_FALSE(matches_glob("a.b", "xa.b"));
  EXPECT_FALSE(matches_glob("", "a"));
  EXPECT_TRUE(matches_glob("", ""));
}

TEST(Glob, StarTakesAnyRunOfCharactersDotsToo) {
  EXPECT_TRUE(matches_glob("model.*.fc1", "model.encoder.layers.0.fc1"));
  EXPECT_TRUE(matches_glob("*fc1", "fc1"));
  EXPECT_TRUE(matches_glob("*", ""));
  EXPECT_TRUE(matches_glob("a**b", "ab"));
  EXPECT_FALSE(matches_glob("model.*.fc1", "model.encoder.layers.0.fc2"));
}

TEST(Glob, StarGivesBackWhatALaterPieceNeeds) {
  EXPECT_TRUE(matches_glob("*ab", "aab"));
  EXPECT_TRUE(matches_glob("*.0.*.0", "a.0.b.1.0.c.0"));
  EXPECT_FALSE(matches_glob("*ab*ab", "ab"));
}

TEST(Glob, QuestionMarkTakesOneCharacter) {
  EXPECT_TRUE(matches_glob("layers.?.fc", "layers.7.fc"));
  EXPECT_FALSE(matches_glob("layers.?.fc", "layers.11.fc"));
  EXPECT_FALSE(matches_glob("a?", "a"));
}

TEST(Glob, SetsHoldCharactersRangesAndTheirComplement) {
  EXPECT_TRUE(matches_glob("fc[12]", "fc2"));
  EXPECT_FALSE(matches_glob("fc[12]", "fc3"));
  EXPECT_TRUE(matches_glob("layers.[0-3].*", "layers.3.fc1"));
  EXPECT_FALSE(matches_glob("layers.[0-3].*", "layers.4.fc1"));
  EXPECT_FALSE(matches_glob("[0-3]", "-"));
  EXPECT_TRUE(matches_glob("[!0-3]", "4"));
  EXPECT_FALSE(matches_glob("[!0-3]", "0"));
  EXPECT_TRUE(matches_glob("[]a]", "]"));
  EXPECT_TRUE(matches_glob("[a-]", "-"));
}

TEST(Glob, AnUnclosedBracketStandsForItself) {
  EXPECT_TRUE(matches_glob("a[b", "a[b"));
  EXPECT_FALSE(matches_glob("a[b", "ab"));
  EXPECT_TRUE(matches_glob("[]", "[]"));
  EXPECT_TRUE(matches_glob("a[!", "a[!"));
}

TEST(Glob, ManyStarsTakeNoExponentialTime) {
  std::string glob, path(2000, 'a');
  for (int i = 0; i < 500; ++i) glob += "*a";
  EXPECT_FALSE(matches_glob(glob + "b", path));
}

TEST(Nearest, CountsLettersThatDiffer) {
  const std::vector<std::string_view> names = {"linear", "pointwise_conv", "conv1d"};
  EXPECT_THAT(nearest("liner", names), Optional(std::string_view("linear")));
  EXPECT_THAT(nearest("conv3d", names), Optional(std::string_view("conv1d")));
  EXPECT_EQ(nearest("embedding", names), std::nullopt);
  EXPECT_EQ(nearest("", names), std::nullopt);
}

TEST(Nearest, FindsAPathWhoseBeginningOrEndWasLeftOut) {
  const std::vector<std::string_view> paths = {"model.decoder.layers.0.fc1",
                                               "model.encoder.layers.0.fc1"};
  EXPECT_THAT(nearest("encoder.layers.0.*", paths), Optional(paths[1]));
  EXPECT_THAT(nearest("model.encoder", paths), Optional(paths[1]));
  EXPECT_THAT(nearest("model.encoder.layer.*", paths), Optional(paths[1]));
}

TEST(Nearest, TakesTheFirstOfEquallyNearNames) {
  const std::vector<std::string_view> names = {"conv1d", "conv2d"};
  EXPECT_THAT(nearest("conv3d", names), Optional(std::string_view("conv1d")));
}

}  // namespace
}  // namespace oasr
