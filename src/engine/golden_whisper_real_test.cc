// Real Whisper weights against transcripts of openai-whisper 20250625: token for token.
//
// The checked-in run takes a sample. The disabled tests take every clip and every long file of both
// models: `ctest -C slow -L slow`, or --gtest_also_run_disabled_tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>

#include "base/fs.h"
#include "base/json.h"
#include "decode/scores.h"
#include "engine/plan.h"
#include "engine/transcriber.h"
#include "features/log_mel.h"
#include "load/load.h"
#include "testing/paths.h"

namespace oasr::engine {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSets[] = {
    "an4",           "speechocean762", "ljspeech32", "read_english_misc", "kathleen_arctic16k",
    "aishell_sample"};

struct Bench {
  ThreadPool pool;
  ExecContext context;
  std::shared_ptr<const models::AedModel> model;
  std::unique_ptr<Transcriber> transcriber;

  explicit Bench(int threads) : pool(threads), context{.pool = &pool, .isa = *selected_isa()} {}
};

// The weights with all heads of the decoder's upper half for alignment: what the reference takes
// for a checkpoint that it opens by its path, as it did for these transcripts.
void link_with_all_heads(const fs::path& weights, const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(weights)) {
    fs::create_symlink(fs::absolute(entry.path()), folder / entry.path().filename());
  }
  const auto read = [&](const char* name) {
    return *parse_json(*read_text_file(weights / name), name);
  };
  const Json config = read("config.json");
  Json generation = read("generation_config.json");
  Json heads = Json::array();
  const int layers = config.at("decoder_layers");
  for (int layer = layers / 2; layer < layers; ++layer) {
    for (int head = 0; head < config.at("decoder_attention_heads").get<int>(); ++head) {
      heads.push_back({layer, head});
    }
  }
  generation["alignment_heads"] = heads;
  fs::remove(folder / "generation_config.json");
  ASSERT_TRUE(write_text_file(folder / "generation_config.json", generation.dump()));
}

// Nothing without the weights.
std::unique_ptr<Bench> load(const std::string& name) {
  const auto weights = testing::real_weights(name, "hf");
  if (!weights) return nullptr;
  const testing::TemporaryFolder folder;
  link_with_all_heads(*weights, folder.path());
  auto bench = std::make_unique<Bench>(*thread_count(0));
  load::LoadOptions options;
  options.dtype = DType::f32;
  auto model = load::load_model(folder.path(), options, bench->context);
  if (!model) throw std::runtime_error(model.error().message());
  bench->model = std::dynamic_pointer_cast<const models::AedModel>(model->model);
  bench->transcriber = *Transcriber::create(bench->model, bench->context);
  return bench;
}

std::vector<Json> read_lines(const fs::path& path) {
  std::vector<Json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    lines.push_back(*parse_json(line, path.string()));
  }
  return lines;
}

fs::path goldens(const std::string& model) {
  return *testing::full_data() / "goldens" / "whisper_real" / model;
}

std::unique_ptr<AudioSource> open_key(const std::string& key) {
  auto audio = open_audio(*testing::full_data() / "data" / key);
  if (!audio) throw std::runtime_error(audio.error().message());
  return std::move(*audio);
}

// decode() of the reference: one window, no timestamps, no thresholds.
TranscribeOptions clip_options(const std::string& language, int beam_size) {
  TranscribeOptions options;
  options.language = language;
  options.timestamps = false;
  options.single_window = true;
  options.beam_size = beam_size;
  options.temperatures = {0};
  options.no_speech_threshold.reset();
  options.n_best = beam_size;
  options.best_of = beam_size;
  return options;
}

// The log-probability of `tokens` and the end after the start sequence, masked as in decoding;
// token by token.
std::vector<double> log_probabilities(Bench& bench, AudioSource& audio,
                                      const TranscribeOptions& options,
                                      const std::vector<TokenId>& tokens) {
  const auto plan = make_plan(options, *bench.model);
  auto state = *bench.model->new_state(bench.context, 1, 1);
  EXPECT_TRUE(audio.rewind());
  const auto samples = *read_all(audio);
  const auto window = state->encode(whisper_log_mel(samples, bench.model->n_mels()));
  const auto row = state->open_row(window);
  auto feed = plan->start_sequence(*plan->language);
  feed.push_back(bench.model->tokens().no_timestamps);
  std::vector<float> logits(static_cast<std::size_t>(state->vocabulary_size()));
  std::vector<double> result;
  decode::TokenTree tree(bench.model->tokens().timestamp_begin, 448);
  decode::History history;
  for (std::size_t i = 0; i <= tokens.size(); ++i) {
    const decode::StepScorer::Input input{row, feed};
    state->score({&input, 1}, logits);
    decode::apply_rules(plan->rules, logits, history);
    const TokenId next = i < tokens.size() ? tokens[i] : bench.model->tokens().eot;
    result.push_back(logits[static_cast<std::size_t>(next)] - decode::log_sum_exp(logits));
    feed = {next};
    history = tree.extend(history, next);
  }
  return result;
}

// Why two transcripts differ: the log-probabilities at the first different token, and of the whole.
void explain(Bench& bench, const std::string& key, const TranscribeOptions& options,
             const std::vector<TokenId>& ours, const std::vector<TokenId>& theirs) {
  const auto audio = open_key(key);
  const auto a = log_probabilities(bench, *audio, options, ours);
  const auto b = log_probabilities(bench, *audio, options, theirs);
  std::size_t first = 0;
  while (first < std::min(ours.size(), theirs.size()) && ours[first] == theirs[first]) ++first;
  double sum_a = 0, sum_b = 0;
  for (const double x : a) sum_a += x;
  for (const double x : b) sum_b += x;
  std::printf(
      "  %s beam %d differs at token %zu: margin there %.6f, mean log-probability ours %.6f"
      " theirs %.6f\n    ours   %s\n    theirs %s\n",
      key.c_str(), options.beam_size.value_or(1), first, a[first] - b[first],
      sum_a / static_cast<double>(std::max<std::size_t>(1, ours.size())),
      sum_b / static_cast<double>(std::max<std::size_t>(1, theirs.size())),
      bench.model->tokenizer().decode(ours).c_str(),
      bench.model->tokenizer().decode(theirs).c_str());
}

// The reference resamples with another filter, which moves a token or a time now and then; where
// nothing is resampled, numbers are compared too.
bool is_resampled(const AudioSource& audio) { return audio.info().sample_rate != 16000; }

struct Tally {
  int same = 0, all = 0;
  double largest_logprob_error = 0, largest_no_speech_error = 0;
  void add(bool equal) { ++all, same += equal; }
};

void compare_clip(Bench& bench, const Json& line, const char* mode, Tally& tally) {
  const std::string key = line.at("key");
  const auto options = clip_options(line.at("language"), std::string(mode) == "greedy" ? 1 : 5);
  const auto audio = open_key(key);
  const auto transcript = bench.transcriber->transcribe(*audio, options);
  ASSERT_TRUE(transcript) << key << ": " << transcript.error().message();
  std::vector<TokenId> ours;
  for (const Segment& segment : transcript->segments) {
    ours.insert(ours.end(), segment.tokens.begin(), segment.tokens.end());
  }
  const auto theirs = line.at(mode).at("tokens").get<std::vector<TokenId>>();
  tally.add(ours == theirs);
  if (ours != theirs) {
    explain(bench, key, options, ours, theirs);
    return;
  }
  if (transcript->segments.empty() || is_resampled(*audio)) return;
  const Segment& segment = transcript->segments[0];
  const auto error = [&](double value, const char* field) {
    return std::abs(value - line.at(mode).at(field).get<double>());
  };
  tally.largest_logprob_error =
      std::max(tally.largest_logprob_error, error(segment.avg_logprob, "avg_logprob"));
  tally.largest_no_speech_error =
      std::max(tally.largest_no_speech_error, error(segment.no_speech_prob, "no_speech_prob"));
}

void compare_clips(Bench& bench, const std::string& model, const char* mode, std::size_t limit) {
  Tally tally;
  for (const char* set : kSets) {
    const fs::path path = goldens(model) / (std::string(set) + ".jsonl");
    if (!fs::exists(path)) continue;
    std::size_t taken = 0;
    for (const Json& line : read_lines(path)) {
      if (taken++ == limit) break;
      compare_clip(bench, line, mode, tally);
    }
  }
  std::printf(
      "%s %s: %d of %d clips have the reference's tokens; largest error of avg_logprob %.2g,"
      " of no_speech_prob %.2g\n",
      model.c_str(), mode, tally.same, tally.all, tally.largest_logprob_error,
      tally.largest_no_speech_error);
  EXPECT_GE(tally.same, 0.99 * tally.all);
  // Six decimals are kept there; our float32 sums differ in the last bits.
  EXPECT_LT(tally.largest_logprob_error, 1e-3);
  EXPECT_LT(tally.largest_no_speech_error, 1e-3);
}

// transcribe() of the reference: one temperature.
TranscribeOptions long_options(const Json& line) {
  TranscribeOptions options;
  options.language = "en";
  options.temperatures = {0};
  if (line.contains("beam_size") && !line.at("beam_size").is_null()) {
    options.beam_size = line.at("beam_size");
  }
  options.condition_on_previous_text = line.value("condition_on_previous_text", true);
  return options;
}

void compare_segments(const std::vector<Segment>& ours, const Json& theirs, Tally& tally,
                      const std::string& name) {
  const std::size_t size = std::max(ours.size(), theirs.size());
  for (std::size_t i = 0; i < size; ++i) {
    bool same = i < ours.size() && i < theirs.size();
    if (same) {
      same = ours[i].tokens == theirs[i].at("tokens").get<std::vector<TokenId>>() &&
             ours[i].seek == theirs[i].at("seek").get<int>() &&
             std::abs(ours[i].start - theirs[i].at("start").get<double>()) < 1e-6 &&
             std::abs(ours[i].end - theirs[i].at("end").get<double>()) < 1e-6;
    }
    tally.add(same);
    if (same) continue;
    std::printf("  %s segment %zu\n    ours   %s\n    theirs %s\n", name.c_str(), i,
                i < ours.size() ? ours[i].text.c_str() : "(none)",
                i < theirs.size() ? theirs[i].at("text").get<std::string>().c_str() : "(none)");
  }
}

void compare_long(Bench& bench, const std::string& model, bool all) {
  for (const Json& line : read_lines(goldens(model) / "longform.jsonl")) {
    const std::string key = line.at("key");
    if (!all && key.find("jfk.wav") == std::string::npos) continue;
    const auto options = long_options(line);
    const auto audio = open_key(key);
    const auto transcript = bench.transcriber->transcribe(*audio, options);
    ASSERT_TRUE(transcript) << transcript.error().message();
    Tally tally;
    const std::string name = key + " beam " + std::to_string(options.beam_size.value_or(1)) +
                             (options.condition_on_previous_text ? " conditioned" : "");
    compare_segments(transcript->segments, line.at("segments"), tally, name);
    std::printf("%s %s: %d of %d segments equal in tokens and times\n", model.c_str(), name.c_str(),
                tally.same, tally.all);
    for (const auto& warning : transcript->warnings) {
      std::printf("  warning %s: %s\n", warning.kind.c_str(), warning.message.c_str());
    }
    EXPECT_EQ(tally.same, tally.all);
  }
}

void compare_words(Bench& bench, const std::string& model, std::size_t limit) {
  Tally tally;
  int words = 0, close = 0, resampled = 0;
  double largest_probability_error = 0;
  std::size_t taken = 0;
  for (const Json& line : read_lines(goldens(model) / "words.jsonl")) {
    if (taken++ == limit) break;
    auto options = long_options(line);
    options.word_timestamps = true;
    const std::string key = line.at("key");
    const auto audio = open_key(key);
    const auto transcript = bench.transcriber->transcribe(*audio, options);
    ASSERT_TRUE(transcript) << transcript.error().message();
    const Json& segments = line.at("segments");
    for (std::size_t i = 0; i < std::min(segments.size(), transcript->segments.size()); ++i) {
      const auto& ours = transcript->segments[i].words;
      const Json& theirs = segments[i].at("words");
      tally.add(ours.size() == theirs.size());
      for (std::size_t k = 0; k < std::min(ours.size(), theirs.size()); ++k) {
        const double start = ours[k].start - theirs[k].at("start").get<double>();
        const double end = ours[k].end - theirs[k].at("end").get<double>();
        const bool same = ours[k].text == theirs[k].at("word").get<std::string>() &&
                          std::abs(start) < 0.0201 && std::abs(end) < 0.0201;
        ++words, close += same;
        largest_probability_error =
            std::max(largest_probability_error,
                     std::abs(ours[k].probability - theirs[k].at("probability").get<double>()));
        if (same) continue;
        resampled += is_resampled(*audio);
        std::printf("  %s word '%s' / '%s': start %+.2f end %+.2f s\n", key.c_str(),
                    ours[k].text.c_str(), theirs[k].at("word").get<std::string>().c_str(), start,
                    end);
      }
    }
    tally.add(segments.size() == transcript->segments.size());
  }
  std::printf(
      "%s words: %d of %d within 20 ms; %d of %d segments have as many; largest error of a"
      " probability %.2g\n",
      model.c_str(), close, words, tally.same, tally.all, largest_probability_error);
  EXPECT_EQ(tally.same, tally.all);
  EXPECT_EQ(close + resampled, words);
  EXPECT_GE(close, 0.99 * words);
}

class GoldenWhisperReal : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    OASR_REQUIRE_FULL_DATA();
    bench = load(GetParam());
    if (!bench) GTEST_SKIP() << "no weights of " << GetParam() << " (set OASR_TEST_WEIGHTS)";
  }
  std::string model() const { return GetParam(); }
  std::unique_ptr<Bench> bench;
};

using GoldenTinyEn = GoldenWhisperReal;
INSTANTIATE_TEST_SUITE_P(TinyEn, GoldenTinyEn, ::testing::Values("tiny.en"));

TEST_P(GoldenTinyEn, ASampleHasTheReferencesTokensTimesAndWords) {
  compare_clips(*bench, model(), "greedy", 2);
  compare_clips(*bench, model(), "beam5", 1);
  compare_long(*bench, model(), false);
  compare_words(*bench, model(), 1);
}

class GoldenBoth : public GoldenWhisperReal {};
INSTANTIATE_TEST_SUITE_P(Models, GoldenBoth, ::testing::Values("tiny.en", "base"));

TEST_P(GoldenBoth, DISABLED_GreedyClips) { compare_clips(*bench, model(), "greedy", 10000); }
TEST_P(GoldenBoth, DISABLED_BeamClips) { compare_clips(*bench, model(), "beam5", 10000); }
TEST_P(GoldenBoth, DISABLED_LongFiles) { compare_long(*bench, model(), true); }
TEST_P(GoldenBoth, DISABLED_Words) { compare_words(*bench, model(), 10000); }

TEST_P(GoldenBoth, DISABLED_Languages) {
  if (!bench->model->multilingual()) GTEST_SKIP() << "English only";
  Tally tally;
  double largest = 0;
  for (const char* set : kSets) {
    for (const Json& line : read_lines(goldens(model()) / (std::string(set) + ".jsonl"))) {
      auto options = clip_options("auto", 1);
      options.max_new_tokens = 1;
      const auto audio = open_key(line.at("key"));
      const auto transcript = bench->transcriber->transcribe(*audio, options);
      ASSERT_TRUE(transcript);
      tally.add(transcript->language == line.at("detected_language").get<std::string>());
      largest = std::max(largest, std::abs(transcript->language_probability -
                                           line.at("language_prob").get<double>()));
    }
  }
  std::printf(
      "%s languages: %d of %d as detected by the reference; largest error of a probability"
      " %.2g\n",
      model().c_str(), tally.same, tally.all, largest);
  EXPECT_EQ(tally.same, tally.all);
}

}  // namespace
}  // namespace oasr::engine
