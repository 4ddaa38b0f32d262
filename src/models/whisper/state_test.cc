// States on a small random network: rows are independent, and steps allocate nothing.
#include "models/whisper/state.h"

#include <gtest/gtest.h>

#include "models/whisper/test_support.h"
#include "testing/allocations.h"

namespace oasr::models::whisper {
namespace {

std::shared_ptr<const Network> shared_network() {
  static const auto network = RandomCheckpoint(small_config()).network();
  return network;
}

std::vector<float> random_mel(unsigned seed) {
  const Config config = small_config();
  return kernels::random_floats(config.num_mel_bins * config.window_frames(), seed);
}

std::vector<TokenId> random_tokens(std::size_t count, std::uint32_t seed) {
  std::vector<TokenId> tokens;
  while (tokens.size() < count) {
    seed = seed * 1664525u + 1013904223u;
    tokens.push_back(static_cast<TokenId>((seed >> 8) % 301));
  }
  return tokens;
}

// A row's life: a prompt on a window, then steps of one token.
struct Script {
  int window;
  std::vector<TokenId> prompt, steps;
};

std::vector<Script> scripts() {
  std::vector<Script> rows;
  const std::size_t lengths[] = {1, 3, 90, 40, 64, 17};
  for (unsigned i = 0; i < 6; ++i) {
    rows.push_back({static_cast<int>(i % 3), random_tokens(lengths[i], i), random_tokens(4, 100 + i)});
  }
  return rows;
}

// All logits of the scripts [row][pass], computed with one score() call a pass for all rows.
std::vector<std::vector<float>> run_together(Runner& runner, const std::vector<Script>& rows,
                                             const std::vector<std::size_t>& order) {
  std::vector<WindowId> windows;
  for (unsigned w = 0; w < 3; ++w) windows.push_back(runner.state.encode(random_mel(w + 50)));
  std::vector<decode::RowId> ids(rows.size());
  for (const std::size_t i : order) {
    ids[i] = runner.state.open_row(windows[static_cast<std::size_t>(rows[i].window)]);
  }
  std::vector<std::vector<float>> all(rows.size());
  const auto vocabulary = static_cast<std::size_t>(runner.state.vocabulary_size());
  std::vector<float> logits(rows.size() * vocabulary);
  for (std::size_t pass = 0; pass <= rows[0].steps.size(); ++pass) {
    std::vector<decode::StepScorer::Input> inputs;
    for (const std::size_t i : order) {
      std::span<const TokenId> tokens = rows[i].prompt;
      if (pass > 0) tokens = std::span(rows[i].steps).subspan(pass - 1, 1);
      inputs.push_back({ids[i], tokens});
    }
    runner.state.score(inputs, logits);
    for (std::size_t k = 0; k < order.size(); ++k) {
      auto& out = all[order[k]];
      out.insert(out.end(), logits.begin() + static_cast<std::ptrdiff_t>(k * vocabulary),
                 logits.begin() + static_cast<std::ptrdiff_t>((k + 1) * vocabulary));
    }
  }
  return all;
}

std::vector<float> run_alone(Runner& runner, const Script& script) {
  const WindowId window =
      runner.state.encode(random_mel(static_cast<unsigned>(script.window) + 50));
  const decode::RowId row = runner.state.open_row(window);
  auto all = runner.score(row, script.prompt);
  for (const TokenId token : script.steps) {
    const auto logits = runner.score(row, {token});
    all.insert(all.end(), logits.begin(), logits.end());
  }
  runner.state.close_row(row);
  runner.state.release(window);
  return all;
}

TEST(WhisperState, RowsHaveTheSameBitsAloneAndTogetherInAnyOrderThreadsAndLane) {
  const auto rows = scripts();
  std::vector<std::vector<float>> alone;
  {
    Runner runner(shared_network(), 1, 1, 1, DType::f32, Isa::scalar);
    for (const Script& script : rows) alone.push_back(run_alone(runner, script));
  }
  const std::vector<std::size_t> forwards = {0, 1, 2, 3, 4, 5}, backwards = {5, 4, 3, 2, 1, 0},
                                 mixed = {3, 0, 5, 1, 4, 2};
  for (const auto& [isa, name] : isa_names()) {
    if (!isa_supported(isa)) continue;
    for (const int threads : {1, 2, 3}) {
      for (const auto& order : {forwards, backwards, mixed}) {
        Runner runner(shared_network(), threads, 3, 6, DType::f32, isa);
        EXPECT_EQ(run_together(runner, rows, order), alone) << name << ", threads " << threads;
      }
    }
  }
  Runner reference(shared_network(), 2, 3, 6, DType::f32, Isa::reference);
  EXPECT_EQ(run_together(reference, rows, mixed), alone) << "every op on its reference";
}

TEST(WhisperState, APromptAtOnceGivesTheBitsOfTokenByToken) {
  Runner runner(shared_network(), 2, 1, 2);
  const WindowId window = runner.state.encode(random_mel(1));
  const auto tokens = random_tokens(150, 9);
  const auto at_once = runner.score(runner.state.open_row(window), tokens);
  const decode::RowId row = runner.state.open_row(window);
  std::vector<float> logits;
  for (const TokenId token : tokens) logits = runner.score(row, {token});
  EXPECT_EQ(logits, at_once);
  EXPECT_EQ(runner.state.length(row), 150);
}

TEST(WhisperState, ATruncatedRowGoesOnAsIfItHadNeverSeenMore) {
  Runner runner(shared_network(), 2, 1, 2);
  const WindowId window = runner.state.encode(random_mel(1));
  const decode::RowId row = runner.state.open_row(window), other = runner.state.open_row(window);
  runner.score(row, random_tokens(20, 1));
  runner.score(row, random_tokens(30, 2));
  runner.state.truncate(row, 20);
  runner.score(other, random_tokens(20, 1));
  EXPECT_EQ(runner.score(row, {7}), runner.score(other, {7}));
  EXPECT_THROW(runner.state.truncate(row, 22), InternalError);
}

TEST(WhisperState, ReorderedRowsGoOnAsTheirParentsWould) {
  Runner runner(shared_network(), 2, 1, 4);
  Runner reference(shared_network(), 2, 1, 1);
  const WindowId window = runner.state.encode(random_mel(1));
  reference.state.encode(random_mel(1));
  std::vector<decode::RowId> rows;
  std::vector<std::vector<TokenId>> histories;
  for (unsigned i = 0; i < 4; ++i) {
    rows.push_back(runner.state.open_row(window));
    histories.push_back(random_tokens(5 + i, i));
    runner.score(rows.back(), histories.back());
  }
  std::uint32_t random = 3;
  for (int round = 0; round < 12; ++round) {
    std::vector<decode::RowId> parents;
    const auto before = histories;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      random = random * 1664525u + 1013904223u;
      const std::size_t parent = (random >> 20) % rows.size();
      parents.push_back(rows[parent]);
      histories[i] = before[parent];
    }
    runner.state.reorder(rows, parents);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto token = static_cast<TokenId>(round * 4 + static_cast<int>(i));
      histories[i].push_back(token);
      const auto logits = runner.score(rows[i], {token});
      const decode::RowId row = reference.state.open_row(0);
      ASSERT_EQ(logits, reference.score(row, histories[i])) << "round " << round << " row " << i;
      reference.state.close_row(row);
    }
  }
}

TEST(WhisperState, AWindowDoesNotDependOnTheWindowsBeforeIt) {
  Runner fresh(shared_network()), used(shared_network());
  used.state.release(used.state.encode(random_mel(2)));
  fresh.state.encode(random_mel(1));
  used.state.encode(random_mel(1));
  const auto a = fresh.state.encoder_output(), b = used.state.encoder_output();
  EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
}

TEST(WhisperState, StepsReordersAndWindowsAllocateNothing) {
  Runner runner(shared_network(), 2, 2, 4);
  std::vector<WindowId> windows = {runner.state.encode(random_mel(1)), runner.state.encode(random_mel(2))};
  const auto mel = random_mel(3);
  const auto long_prompt = random_tokens(190, 8);
  std::vector<decode::RowId> rows;
  for (std::size_t i = 0; i < 4; ++i) rows.push_back(runner.state.open_row(windows[i / 2]));
  std::vector<TokenId> next(4, 1);
  std::vector<decode::StepScorer::Input> inputs;
  for (std::size_t i = 0; i < 4; ++i) inputs.push_back({rows[i], {&next[i], 1}});
  const decode::StepScorer::Input prompt{rows[0], long_prompt};
  std::vector<float> logits(4 * static_cast<std::size_t>(runner.state.vocabulary_size()));
  const std::vector<decode::RowId> parents = {rows[1], rows[1], rows[3], rows[2]};
  const auto steps = [&](int count) {
    for (int step = 0; step < count; ++step) {
      runner.state.score(inputs, logits);
      runner.state.reorder(rows, parents);
      for (std::size_t i = 0; i < 4; ++i) next[i] = (next[i] + 7 * static_cast<TokenId>(i)) % 301;
    }
  };
  const std::int64_t before = testing::allocations();
  steps(100);
  runner.state.truncate(rows[0], 0);
  runner.state.score({&prompt, 1}, std::span(logits).first(301));
  for (const auto row : rows) runner.state.close_row(row);
  runner.state.release(windows[0]);
  windows[0] = runner.state.encode(mel);
  EXPECT_EQ(testing::allocations() - before, 0);
}

TEST(WhisperState, AlignmentGivesDistributionsOverFramesAndTheLogitsOfScore) {
  Runner runner(shared_network(), 2, 1, 1);
  const WindowId window = runner.state.encode(random_mel(1));
  const auto tokens = random_tokens(150, 5);  // more than one pass
  const std::size_t vocabulary = 301, frames = 60, heads = 2;  // the upper half: layer 1
  std::vector<float> logits(tokens.size() * vocabulary);
  const auto weights = runner.state.alignment(window, tokens, logits);
  ASSERT_EQ(weights.size(), heads * tokens.size() * frames);
  for (std::size_t row = 0; row < heads * tokens.size(); ++row) {
    double sum = 0;
    for (std::size_t f = 0; f < frames; ++f) {
      EXPECT_GE(weights[row * frames + f], 0);
      sum += double{weights[row * frames + f]};
    }
    EXPECT_NEAR(sum, 1, 1e-5);
  }
  const decode::RowId row = runner.state.open_row(window);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto step = runner.score(row, {tokens[i]});
    ASSERT_TRUE(std::equal(step.begin(), step.end(), logits.begin() + static_cast<std::ptrdiff_t>(i * vocabulary)));
  }
  EXPECT_EQ(runner.state.alignment(window, tokens, {}), weights);
}

TEST(WhisperState, AProbeGivesTheLogitsInTheMiddleOfAnInput) {
  Runner runner(shared_network(), 2, 1, 3);
  const WindowId window = runner.state.encode(random_mel(1));
  const auto tokens = random_tokens(100, 4), other = random_tokens(30, 5);
  const std::size_t vocabulary = 301;
  for (const int probe : {0, 63, 64, 99}) {  // on both sides of where a pass ends
    const decode::RowId a = runner.state.open_row(window), b = runner.state.open_row(window),
                        c = runner.state.open_row(window);
    std::vector<float> logits(3 * vocabulary);
    const std::vector<decode::StepScorer::Input> inputs = {{.row = b, .tokens = other},
                                                           {.row = a, .tokens = tokens, .probe = probe}};
    runner.state.score(inputs, logits);
    const std::vector<TokenId> start(tokens.begin(), tokens.begin() + probe + 1);
    const auto expected = runner.score(c, start);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), logits.begin() + 301)) << probe;
    for (const auto row : {a, b, c}) runner.state.close_row(row);
  }
}

TEST(WhisperState, MisuseIsABugThatIsNamed) {
  Runner runner(shared_network());
  EXPECT_THROW(runner.state.open_row(0), InternalError);
  const WindowId window = runner.state.encode(random_mel(1));
  EXPECT_THROW(runner.state.encode(random_mel(1)), InternalError);
  const decode::RowId row = runner.state.open_row(window);
  EXPECT_THROW(runner.state.open_row(window), InternalError);
  EXPECT_THROW(runner.score(row, {301}), InternalError);
  EXPECT_THROW(runner.score(row, random_tokens(201, 1)), InternalError);
  EXPECT_THROW(runner.score(row, {}), InternalError);
  EXPECT_THROW(runner.state.release(3), InternalError);
}

TEST(StateMemoryOnGpu, RefusesABatchThatDoesNotFitAndNamesOneThatDoes) {
  const Config config = small_config();
  const auto options = [](int windows) {
    return StateOptions{.windows = windows, .rows = 5 * windows, .cross_storage = DType::f16, .alignment_heads = {}};
  };
  const std::size_t all = memory_on_gpu(config, options(40)).total(), some = memory_on_gpu(config, options(7)).total();
  EXPECT_TRUE(check_memory(config, options(40), all).has_value());
  const auto refused = check_memory(config, options(40), all - 1);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_NE(refused.error().what.find("decoding 40 windows at a time takes"), std::string::npos) << refused.error().what;
  EXPECT_EQ(refused.error().remedy, "use a batch size of 39 or less");
  EXPECT_EQ(check_memory(config, options(40), some).error().remedy, "use a batch size of 7 or less");
  EXPECT_EQ(check_memory(config, options(40), some - 1).error().remedy, "use a batch size of 6 or less");
  EXPECT_EQ(check_memory(config, options(40), 1000).error().remedy, "use another GPU, or --device cpu");
}

}  // namespace
}  // namespace oasr::models::whisper
