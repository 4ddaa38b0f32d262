// For tests: an attention encoder-decoder that says what a script tells it to.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "decode/random.h"
#include "models/speech_model.h"

namespace oasr::engine {

// Text ids 0 … 25 are " a" … " z", 26 … 51 "a" … "z", 52 ".", 53 ",", 54 "(", 55 " ", 56 and 57
// the two bytes of "é".
class FakeTokenizer final : public Tokenizer {
 public:
  std::vector<TokenId> encode(std::string_view text) const override {
    std::vector<TokenId> ids;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool spaced = text[i] == ' ' && i + 1 < text.size();
      const char c = spaced ? text[++i] : text[i];
      if (c >= 'a' && c <= 'z') ids.push_back(c - 'a' + (spaced ? 0 : 26));
    }
    return ids;
  }
  std::string decode(std::span<const TokenId> ids) const override {
    std::string text;
    for (const TokenId id : ids) text += is_special(id) ? "" : token_bytes(id);
    return text;
  }
  std::string token_bytes(TokenId id) const override {
    if (id < 26) return std::string(" ") + static_cast<char>('a' + id);
    if (id < 52) return std::string(1, static_cast<char>('a' + id - 26));
    static const std::map<TokenId, std::string> others{{52, "."}, {53, ","},    {54, "("},
                                                       {55, " "}, {56, "\xC3"}, {57, "\xA9"}};
    const auto found = others.find(id);
    return found == others.end() ? "" : found->second;
  }
  std::optional<TokenId> id_of(std::string_view) const override { return std::nullopt; }
  bool is_special(TokenId id) const override { return id >= 60; }
  int size() const override { return 1571; }
  const std::vector<std::pair<std::string, TokenId>>& special_tokens() const override {
    return special_;
  }

 private:
  std::vector<std::pair<std::string, TokenId>> special_;
};

inline constexpr TokenId kEot = 60, kSot = 61, kEnglish = 62, kGerman = 63, kTranslate = 64,
                         kTranscribe = 65, kSotLm = 66, kSotPrev = 67, kNoSpeech = 68,
                         kNoTimestamps = 69, kTime = 70;

// <|seconds|>
inline TokenId at(double seconds) { return kTime + static_cast<TokenId>(seconds / 0.02 + 0.5); }

// What the script is asked: the encoded window and the tokens of a row.
struct FakeStep {
  const std::vector<float>& mel;  // [80, 3000]
  int window = 0;                 // how many windows were encoded before, by anyone
  std::span<const TokenId> row;   // everything fed
  std::span<const TokenId> said;  // after the start sequence
  decode::RowId id = -1;          // of the row
};

// Answers with logits [1571]; they start at small pseudo-random values of the row and the mel.
using FakeScript = std::function<void(const FakeStep& step, std::span<float> logits)>;

class FakeModel;

class FakeState final : public models::AedState {
 public:
  FakeState(const FakeModel& model, int windows, int rows);

  using AedState::encode;
  void encode(std::span<const models::MelWindow> windows, std::span<models::WindowId> ids) override;
  void release(models::WindowId window) override { windows_.erase(window); }
  decode::RowId open_row(models::WindowId window) override {
    decode::RowId row = 0;
    while (rows_.contains(row)) ++row;
    CHECK(row < max_rows_, "a free row");
    rows_[row] = {window, {}};
    return row;
  }
  void close_row(decode::RowId row) override { CHECK(rows_.erase(row) == 1, "an open row"); }
  std::vector<float> alignment(models::WindowId window, std::span<const TokenId> tokens,
                               std::span<float> logits) override;
  std::vector<float> encoder_output() override { return {}; }
  std::optional<models::Fault> take_fault() override;
  int vocabulary_size() const override { return 1571; }
  int context_size() const override { return 448; }
  void score(std::span<const Input> inputs, std::span<float> logits) override;
  std::span<float> room(std::size_t logits) override {
    room_.resize(logits);
    return room_;
  }
  int length(decode::RowId row) const override {
    return static_cast<int>(rows_.at(row).tokens.size());
  }
  void truncate(decode::RowId row, int length) override {
    rows_.at(row).tokens.resize(static_cast<std::size_t>(length));
  }
  void reorder(std::span<const decode::RowId> rows,
               std::span<const decode::RowId> parents) override {
    const auto before = rows_;
    for (std::size_t i = 0; i < rows.size(); ++i) rows_.at(rows[i]) = before.at(parents[i]);
  }

 private:
  struct Row {
    models::WindowId window;
    std::vector<TokenId> tokens;
  };
  struct Window {
    std::vector<float> mel;
    int number;
  };
  void answer(decode::RowId id, std::span<float> out) const;

  const FakeModel& model_;
  int max_windows_, max_rows_;
  std::map<models::WindowId, Window> windows_;
  std::map<decode::RowId, Row> rows_;
  std::vector<float> room_;
};

class FakeModel final : public models::AedModel {
 public:
  explicit FakeModel(FakeScript script, bool multilingual = true)
      : script_(std::move(script)), multilingual_(multilingual) {
    ids_ = {.eot = kEot,
            .sot = kSot,
            .sot_prev = kSotPrev,
            .sot_lm = kSotLm,
            .no_speech = kNoSpeech,
            .no_timestamps = kNoTimestamps,
            .transcribe = kTranscribe,
            .translate = kTranslate,
            .timestamp_begin = kTime,
            .languages = {{"en", kEnglish}, {"de", kGerman}},
            .suppress = {54},
            .begin_suppress = {55, kEot},
            .alignment_heads = {{0, 0}}};
    if (!multilingual) ids_.languages.clear();
  }
  const models::ModelInfo& info() const override { return info_; }
  const Tokenizer& tokenizer() const override { return tokenizer_; }
  const layers::LayerList& layers() const override { return layers_; }
  int n_mels() const override { return 80; }
  int window_frames() const override { return frames; }
  int context_size() const override { return 448; }
  bool multilingual() const override { return multilingual_; }
  const models::AedTokens& tokens() const override { return ids_; }
  Result<std::unique_ptr<models::AedState>> new_state(ExecContext, int windows,
                                                      int rows) const override {
    return std::unique_ptr<models::AedState>(std::make_unique<FakeState>(*this, windows, rows));
  }

  const FakeScript& script() const { return script_; }

  int frames = 3000;  // of a window

  // What happened, over all states.
  mutable int encoded = 0, steps = 0, most_rows = 0;
  mutable std::vector<std::vector<TokenId>> prompts;  // what was fed before the first choice

  // Told by the calls of take_fault(), the first one first. A script may add to it, and so may
  // `called`, which is told of every "encode" and "alignment".
  mutable std::vector<models::Fault> faults;
  std::function<void(std::string_view call)> called = [](std::string_view) {};

  // A prompt may come in two parts.
  void note_prompt(const std::vector<TokenId>& fed) const {
    const bool goes_on = !prompts.empty() && prompts.back().size() < fed.size() &&
                         std::equal(prompts.back().begin(), prompts.back().end(), fed.begin());
    goes_on ? void(prompts.back() = fed) : prompts.push_back(fed);
  }

 private:
  FakeScript script_;
  bool multilingual_;
  models::AedTokens ids_;
  models::ModelInfo info_;
  layers::LayerList layers_;
  FakeTokenizer tokenizer_;
};

inline FakeState::FakeState(const FakeModel& model, int windows, int rows)
    : model_(model), max_windows_(windows), max_rows_(rows) {}

inline void FakeState::encode(std::span<const models::MelWindow> windows, std::span<models::WindowId> ids) {
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const models::MelWindow& one = windows[i];
    models::WindowId window = 0;
    while (windows_.contains(window)) ++window;
    CHECK(window < max_windows_, "a free window");
    windows_[window] = {{one.mel.begin(), one.mel.end()}, model_.encoded++};
    model_.called("encode");
    ids[i] = window;
  }
}

inline std::optional<models::Fault> FakeState::take_fault() {
  if (model_.faults.empty()) return std::nullopt;
  models::Fault fault = model_.faults.front();
  model_.faults.erase(model_.faults.begin());
  return fault;
}

inline void FakeState::score(std::span<const Input> inputs, std::span<float> logits) {
  ++model_.steps;
  model_.most_rows = std::max(model_.most_rows, static_cast<int>(inputs.size()));
  for (const Input& input : inputs) {
    Row& row = rows_.at(input.row);
    for (std::size_t i = 0; i < input.tokens.size(); ++i) {
      row.tokens.push_back(input.tokens[i]);
      const bool probed = input.probe >= 0 && i == static_cast<std::size_t>(input.probe);
      for (int times = probed + (i + 1 == input.tokens.size()); times > 0; --times) {
        answer(input.row, logits.first(1571));
        logits = logits.subspan(1571);
      }
    }
    CHECK(row.tokens.size() <= 448, "a row of 448 positions");
  }
}

inline void FakeState::answer(decode::RowId id, std::span<float> out) const {
  const Row& row = rows_.at(id);
  const Window& window = windows_.at(row.window);
  std::uint64_t state = decode::mix64(static_cast<std::uint64_t>(window.mel[40] * 1e6f));
  for (const TokenId id : row.tokens) state = decode::mix64(state ^ static_cast<std::uint64_t>(id));
  for (std::size_t k = 0; k < out.size(); ++k) {
    out[k] = static_cast<float>(decode::mix64(state + k) >> 40) * 0x1p-24f;
  }
  const auto sot = std::find(row.tokens.begin(), row.tokens.end(), kSot);
  auto start = static_cast<std::size_t>(sot - row.tokens.begin()) + 1;
  const auto is_start = [](TokenId id) { return id > kSot && id <= kNoTimestamps; };
  while (start < row.tokens.size() && is_start(row.tokens[start])) ++start;
  start = std::min(start, row.tokens.size());
  const std::span<const TokenId> all = row.tokens;
  if (start == all.size()) model_.note_prompt(row.tokens);
  model_.script()({window.mel, window.number, all, all.subspan(start), id}, out);
}

inline std::vector<float> FakeState::alignment(models::WindowId, std::span<const TokenId> tokens,
                                               std::span<float> logits) {
  model_.called("alignment");
  // Token i looks at the 20 encoder frames from 20 i.
  std::vector<float> weights(tokens.size() * 1500, 1e-4f);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    for (std::size_t t = 20 * i; t < std::min<std::size_t>(1500, 20 * i + 20); ++t) {
      weights[i * 1500 + t] = 0.05f;
    }
  }
  std::fill(logits.begin(), logits.end(), 0.0f);
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    logits[i * 1571 + static_cast<std::size_t>(tokens[i + 1])] = 8.0f;
  }
  return weights;
}

// Says `tokens`, then eot, in every window; `strength` is the logit above the noise of [0, 1).
inline FakeScript say(std::vector<TokenId> tokens, float strength = 20.0f) {
  return [=](const FakeStep& step, std::span<float> logits) {
    const std::size_t place = step.said.size();
    const TokenId next = place < tokens.size() ? tokens[place] : kEot;
    logits[static_cast<std::size_t>(next)] = strength;
  };
}

}  // namespace oasr::engine
