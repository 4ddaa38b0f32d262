#include "api/catalogue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace oasr {
namespace {

std::string with_file(const std::string& file) {
  return R"({"default": "m", "models": [{"name": "m", "sources": [{"kind": "openai", "files": [)" +
         file + "]}]}]}";
}

TEST(Catalogue, HasEveryPublicWhisperSize) {
  for (const char* name :
       {"tiny", "tiny.en", "base", "base.en", "small", "small.en", "medium", "medium.en",
        "large-v1", "large-v2", "large-v3", "large-v3-turbo"}) {
    EXPECT_NE(builtin_catalogue().find(name), nullptr) << name;
  }
}

TEST(Catalogue, FindsAliases) {
  EXPECT_EQ(builtin_catalogue().find("turbo")->name, "large-v3-turbo");
  EXPECT_EQ(builtin_catalogue().find("large")->name, "large-v3");
  EXPECT_EQ(builtin_catalogue().find("huge"), nullptr);
}

TEST(Catalogue, EveryNameIsThereOnce) {
  std::set<std::string> names;
  for (const auto& model : builtin_catalogue().models) {
    EXPECT_TRUE(names.insert(model.name).second) << model.name;
    for (const auto& alias : model.aliases) EXPECT_TRUE(names.insert(alias).second) << alias;
  }
}

TEST(Catalogue, EveryAddressIsHttps) {
  for (const auto& model : builtin_catalogue().models) {
    for (const auto& source : model.sources) {
      for (const auto& file : source.files) {
        EXPECT_TRUE(file.url.empty() || file.url.rfind("https://", 0) == 0) << file.url;
      }
    }
  }
}

TEST(Catalogue, OpenAiAddressesHoldTheirOwnDigest) {
  for (const auto& model : builtin_catalogue().models) {
    const auto& source = model.sources.front();
    ASSERT_EQ(source.kind, "openai") << model.name;
    const auto& file = source.files.front();
    EXPECT_NE(file.url.find("/" + file.digest.hex + "/"), std::string::npos) << file.url;
    EXPECT_EQ(file.name, model.name + ".pt");
  }
}

TEST(Catalogue, WeightsArePinnedInEverySource) {
  for (const auto& model : builtin_catalogue().models) {
    for (const auto& source : model.sources) {
      const auto pinned = std::count_if(
          source.files.begin(), source.files.end(), [](const SourceFile& file) {
            return file.name.find("model.") == 0 || file.name.find(".pt") != std::string::npos
                       ? file.digest.kind == Digest::Kind::sha256 && file.digest.hex.size() == 64
                       : false;
          });
      EXPECT_EQ(pinned, 1) << model.name << " " << source.kind;
    }
  }
}

TEST(Catalogue, PackageRouteIsThereForTinyEnAndBase) {
  for (const char* name : {"tiny.en", "base"}) {
    const auto& source = builtin_catalogue().find(name)->sources.back();
    EXPECT_EQ(source.kind, "packages");
    EXPECT_FALSE(source.packages.empty());
    EXPECT_EQ(source.files.size(), 4u);
  }
}

TEST(CatalogueParser, RefusesNamesThatLeaveTheFolder) {
  for (const char* name : {"../x", "a/b", ".hidden", ""}) {
    const auto parsed =
        parse_catalogue(with_file(R"({"name": ")" + std::string(name) + R"(", "url": "https://x/"})"));
    ASSERT_FALSE(parsed) << name;
    EXPECT_NE(parsed.error().what.find("not a file name"), std::string::npos);
  }
}

TEST(CatalogueParser, RefusesAShortDigest) {
  const auto parsed =
      parse_catalogue(with_file(R"({"name": "a", "url": "https://x/", "sha256": "12"})"));
  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().what.find("sha256"), std::string::npos);
}

TEST(CatalogueParser, RefusesPlainHttp) {
  EXPECT_FALSE(parse_catalogue(with_file(R"({"name": "a", "url": "http://x/"})")));
}

TEST(CatalogueParser, RefusesAFileWithoutOrigin) {
  EXPECT_FALSE(parse_catalogue(with_file(R"({"name": "a"})")));
}

TEST(CatalogueParser, NamesAMissingDefault) {
  const auto parsed = parse_catalogue(R"({"default": "x", "models": []})");
  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().what.find("default"), std::string::npos);
}

TEST(CatalogueParser, RefusesWhatIsNoJson) { EXPECT_FALSE(parse_catalogue("{")); }

}  // namespace
}  // namespace oasr
