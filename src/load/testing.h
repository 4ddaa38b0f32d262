// For tests of loading: a machine, logits of a window of noise, and token tables side by side.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/fs.h"
#include "load/load.h"

namespace oasr::load {

struct LoadFixture : ::testing::Test {
  ThreadPool pool{2};
  ExecContext context{.pool = &pool, .isa = detected_isa()};

  LoadedModel load_all(const std::filesystem::path& path, const LoadOptions& options = {}) {
    auto loaded = load_model(path, options, context);
    CHECK(loaded.has_value(), loaded ? "" : loaded.error().message());
    return std::move(*loaded);
  }
  std::shared_ptr<const models::AedModel> load(const std::filesystem::path& path,
                                               const LoadOptions& options = {}) {
    return aed(load_all(path, options));
  }
  static std::shared_ptr<const models::AedModel> aed(const LoadedModel& loaded) {
    return std::dynamic_pointer_cast<const models::AedModel>(loaded.model);
  }

  // Logits after Whisper's start tokens on a window of noise.
  std::vector<float> logits(const models::AedModel& model) {
    auto state = model.new_state(context, 1, 1).value();
    std::vector<float> mel(static_cast<std::size_t>(model.n_mels() * model.window_frames()));
    std::uint32_t random = 1;
    for (float& value : mel) {
      random = random * 1664525u + 1013904223u;
      value = static_cast<float>(random >> 8) * 0x1p-24f - 0.5f;
    }
    const auto row = state->open_row(state->encode(mel));
    const std::vector<TokenId> prompt = {model.tokens().sot, model.tokens().no_timestamps};
    const decode::StepScorer::Input input{row, prompt};
    std::vector<float> scores(static_cast<std::size_t>(state->vocabulary_size()));
    state->score({&input, 1}, scores);
    return scores;
  }
};

inline void expect_same_tokens(const models::AedTokens& a, const models::AedTokens& b) {
  EXPECT_EQ(a.eot, b.eot);
  EXPECT_EQ(a.sot, b.sot);
  EXPECT_EQ(a.sot_prev, b.sot_prev);
  EXPECT_EQ(a.sot_lm, b.sot_lm);
  EXPECT_EQ(a.no_speech, b.no_speech);
  EXPECT_EQ(a.no_timestamps, b.no_timestamps);
  EXPECT_EQ(a.transcribe, b.transcribe);
  EXPECT_EQ(a.translate, b.translate);
  EXPECT_EQ(a.timestamp_begin, b.timestamp_begin);
  EXPECT_EQ(a.languages, b.languages);
  EXPECT_EQ(a.suppress, b.suppress);
  EXPECT_EQ(a.begin_suppress, b.begin_suppress);
  EXPECT_EQ(a.alignment_heads, b.alignment_heads);
}

// The files of a folder by name.
inline std::map<std::string, std::string> files_of(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files[entry.path().filename().string()] = read_text_file(entry.path()).value();
  }
  return files;
}

// Not EXPECT_EQ: its message would be the files.
inline void expect_same_files(const std::filesystem::path& a, const std::filesystem::path& b) {
  const auto left = files_of(a), right = files_of(b);
  EXPECT_EQ(left.size(), right.size());
  for (const auto& [name, bytes] : left) {
    ASSERT_TRUE(right.contains(name)) << name;
    EXPECT_TRUE(bytes == right.at(name)) << name << " differs";
  }
}

}  // namespace oasr::load
