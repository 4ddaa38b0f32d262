// Whisper on a GPU gives the bits of the processor.
#include <gtest/gtest.h>

#include <set>

#include "layers/links.h"
#include "models/whisper/int8_support.h"

namespace oasr::models::whisper {
namespace {

using kernels::ScaledMMBackend;
using Make = std::shared_ptr<const Network> (*)(const RandomCheckpoint&, ScaledMMBackend);

struct Precision {
  const char* name;
  Make make;
  ScaledMMBackend on_gpu = ScaledMMBackend::native;
};

class WhisperOnGpu : public ::testing::TestWithParam<Precision> {
 protected:
  void SetUp() override {
    auto opened = Gpu::open(0);
    if (!opened) GTEST_SKIP() << "no GPU: " << opened.error().what;
    gpu = std::move(*opened);
    const Status prepared = kernels::prepare(kernels::scaled_mm_implementation(GetParam().on_gpu), *gpu);
    if (!prepared) GTEST_SKIP() << prepared.error().message();
  }

  // A state on the processor, or on the GPU.
  std::unique_ptr<State> state(Gpu* where, int windows, int rows, Arithmetic arithmetic = Arithmetic::float32) {
    auto network = GetParam().make(random, where != nullptr ? GetParam().on_gpu : ScaledMMBackend::native);
    if (where != nullptr) network->layers.place(*where);
    return std::make_unique<State>(network,
                                   ExecContext{.pool = &pool, .isa = detected_isa(), .gpu = where, .arithmetic = arithmetic},
                                   StateOptions{.windows = windows,
                                                .rows = rows,
                                                .cross_storage = DType::f16,
                                                .alignment_heads = default_alignment_heads(random.config, true)});
  }

  std::vector<float> mel(unsigned seed) const {
    return kernels::random_floats(random.config.window_frames() * std::int64_t{random.config.num_mel_bins}, seed);
  }

  std::unique_ptr<Gpu> gpu;
  ThreadPool pool{2};
  RandomCheckpoint random{small_config()};
};

void expect_same(std::span<const float> a, std::span<const float> b, const char* what) {
  const std::int64_t at = kernels::first_difference(a, b);
  EXPECT_EQ(at, -1) << what << ": " << (at < 0 ? 0 : a[static_cast<std::size_t>(at)]) << " and "
                    << (at < 0 ? 0 : b[static_cast<std::size_t>(at)]);
}

// Two windows, three rows of different lengths, a probe, a reorder, a truncation: every number that leaves
// the state.
std::vector<float> run(State& state, std::span<const float> first, std::span<const float> second) {
  std::vector<float> all;
  const auto keep = [&](std::span<const float> values) { all.insert(all.end(), values.begin(), values.end()); };
  const WindowId windows[] = {state.encode(first), state.encode(second)};
  keep(state.encoder_output());
  const decode::RowId rows[] = {state.open_row(windows[0]), state.open_row(windows[1]), state.open_row(windows[1])};
  const auto vocabulary = static_cast<std::size_t>(state.vocabulary_size());
  const auto score = [&](std::vector<decode::StepScorer::Input> inputs, std::size_t outputs) {
    std::vector<float> logits(outputs * vocabulary);
    state.score(inputs, logits);
    keep(logits);
  };
  std::vector<TokenId> prompt(90);
  for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<TokenId>(i * 7 % 301);
  const std::vector<TokenId> one = {5}, two = {9, 11}, three = {300, 0, 17};
  score({{rows[0], prompt, 3}, {rows[1], one}, {rows[2], three}}, 4);
  score({{rows[0], one}, {rows[1], two}, {rows[2], one}}, 3);
  const decode::RowId children[] = {rows[1], rows[2]}, parents[] = {rows[2], rows[2]};
  state.reorder(children, parents);
  state.truncate(rows[0], 50);
  score({{rows[0], two}, {rows[1], two}, {rows[2], one}}, 3);
  std::vector<float> logits(prompt.size() * vocabulary);
  keep(state.alignment(windows[1], prompt, logits));
  keep(logits);
  EXPECT_FALSE(state.take_fault().has_value());
  return all;
}

TEST_P(WhisperOnGpu, GivesTheBitsOfTheProcessor) {
  const auto first = mel(100), second = mel(101);
  const auto expected = run(*state(nullptr, 2, 3), first, second);
  const auto on_gpu = state(gpu.get(), 2, 3);
  expect_same(run(*on_gpu, first, second), expected, "on the GPU");
}

TEST_P(WhisperOnGpu, IsNotChangedByItsNeighbours) {
  const auto first = mel(102), second = mel(103);
  const std::vector<TokenId> tokens = {1, 2, 3};
  Arithmetic arithmetic = Arithmetic::float32;
  const auto alone = [&](int windows, int rows, bool neighbours) {
    const auto on_gpu = state(gpu.get(), windows, rows, arithmetic);
    if (neighbours) on_gpu->encode(second);
    const WindowId window = on_gpu->encode(first);
    const decode::RowId row = on_gpu->open_row(window);
    std::vector<decode::StepScorer::Input> inputs = {{row, tokens}};
    for (int i = 1; i < rows; ++i) inputs.push_back({on_gpu->open_row(i % windows), tokens});
    std::vector<float> logits(inputs.size() * static_cast<std::size_t>(on_gpu->vocabulary_size()));
    on_gpu->score(inputs, logits);
    logits.resize(static_cast<std::size_t>(on_gpu->vocabulary_size()));
    return logits;
  };
  const auto exact = alone(1, 1, false);
  for (const auto& [each, name] : arithmetic_names()) {
    arithmetic = each;
    const auto expected = alone(1, 1, false);
    expect_same(alone(2, 16, true), expected, "beside 15 rows");
    expect_same(alone(2, 33, true), expected, "beside 32 rows");
    EXPECT_EQ(kernels::first_difference(exact, expected) == -1, each == Arithmetic::float32) << name;
  }
}

TEST_P(WhisperOnGpu, NamesTheLayerWhoseInputIsTooLargeForFloat16) {
  if (std::string_view(GetParam().name).starts_with("int8")) GTEST_SKIP() << "that layer is int8";
  random.set("model.encoder.layers.1.final_layer_norm.weight", 3, 1e6f);  // times a deviation
  for (const auto& [arithmetic, name] : arithmetic_names()) {
    const auto on_gpu = state(gpu.get(), 1, 1, arithmetic);
    on_gpu->encode(mel(104));
    const auto fault = on_gpu->take_fault();
    EXPECT_EQ(fault.has_value(), arithmetic == Arithmetic::float16) << name;
    if (fault) {
      EXPECT_EQ(fault->layer, "model.encoder.layers.1.fc1");
    }
  }
}

TEST_P(WhisperOnGpu, EncodesWindowsTogetherLikeAlone) {
  constexpr int kWindows = 19;  // more than one pass
  const auto on_gpu = state(gpu.get(), kWindows, kWindows), on_processor = state(nullptr, 1, 1);
  const std::vector<TokenId> tokens = {4, 5, 6};
  const auto vocabulary = static_cast<std::size_t>(on_gpu->vocabulary_size());
  for (const int count : {kWindows, 2, 5, 5, 5, 1, kWindows}) {  // sections of kernels that come again
    std::vector<std::vector<float>> mels;
    std::vector<MelWindow> windows;
    for (int i = 0; i < count; ++i) mels.push_back(mel(static_cast<unsigned>(200 + 31 * count + i)));
    for (const auto& values : mels) windows.push_back({.mel = values});
    std::vector<WindowId> ids(windows.size());
    on_gpu->encode(windows, ids);
    std::vector<decode::StepScorer::Input> inputs;
    for (const WindowId id : ids) inputs.push_back({on_gpu->open_row(id), tokens});
    std::vector<float> logits(ids.size() * vocabulary), expected(vocabulary);
    on_gpu->score(inputs, logits);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const WindowId window = on_processor->encode(mels[i]);
      const decode::RowId row = on_processor->open_row(window);
      const decode::StepScorer::Input input{row, tokens};
      on_processor->score({&input, 1}, expected);
      on_processor->close_row(row);
      on_processor->release(window);
      expect_same(std::span(logits).subspan(i * vocabulary, vocabulary), expected, "of windows together");
      on_gpu->close_row(inputs[i].row);
      on_gpu->release(ids[i]);
    }
  }
}

TEST_P(WhisperOnGpu, ReservesWhatIsPlanned) {
  for (const int windows : {1, 3, 20}) {
    const StateOptions options{.windows = windows, .rows = 5 * windows, .cross_storage = DType::f16, .alignment_heads = {}};
    const auto network = GetParam().make(random, GetParam().on_gpu);
    network->layers.place(*gpu);
    const std::size_t before = gpu->counts().allocated;
    const State made(network, ExecContext{.pool = &pool, .isa = detected_isa(), .gpu = gpu.get()}, options);
    EXPECT_EQ(gpu->counts().allocated - before, memory_on_gpu(random.config, options).total()) << windows;
  }
}

TEST_P(WhisperOnGpu, StartsTheStepsOfADecoderAsOneGraph) {
  const auto on_gpu = state(gpu.get(), 2, 3);
  const WindowId window = on_gpu->encode(mel(106));
  const decode::RowId rows[] = {on_gpu->open_row(window), on_gpu->open_row(window)};
  std::vector<float> logits(2 * static_cast<std::size_t>(on_gpu->vocabulary_size()));
  const std::int64_t before = gpu->counts().graphs;
  constexpr int kSteps = 40;
  for (TokenId token = 1; token <= kSteps; ++token) {
    const decode::StepScorer::Input inputs[] = {{rows[0], {&token, 1}}, {rows[1], {&token, 1}}};
    on_gpu->score(inputs, logits);
  }
  EXPECT_GE(gpu->counts().graphs - before, kSteps - 2) << "all but the first";
}

// A window is copied to the GPU in front of its section; nothing cuts that, convolutions and their padding included.
TEST_P(WhisperOnGpu, EncodesAWindowAsOneSection) {
  if (GetParam().on_gpu == ScaledMMBackend::cublaslt) GTEST_SKIP() << "the library's kernels stand between sections";
  const auto on_gpu = state(gpu.get(), 1, 1);
  const auto window = mel(108);
  const auto encode = [&] { on_gpu->release(on_gpu->encode(window)); };
  encode();  // scratch memory grows, which cuts sections
  encode();  // kernels that start one by one, to be compared with
  const Gpu::Counts before = gpu->counts();
  constexpr int kTimes = 3;
  for (int i = 0; i < kTimes; ++i) encode();
  EXPECT_EQ(gpu->counts().graphs - before.graphs, kTimes);
  EXPECT_EQ(gpu->counts().alone - before.alone, 0);
}

// What layers and sections took, told by the state.
struct Times : RunObserver {
  void not_finite(std::string_view, std::int64_t) override {}
  bool wants_times() const override { return on; }
  void layer_time(std::string_view layer, const LayerCall& call) override {
    layers.insert(std::string(layer));
    seconds += call.seconds;
    kernels += call.kernels;
  }
  void section_time(double section, std::int64_t count) override {
    ++sections;
    section_seconds += section;
    section_kernels += count;
  }
  bool on = true;
  std::set<std::string> layers;
  double seconds = 0, section_seconds = 0;
  std::int64_t kernels = 0, section_kernels = 0;
  int sections = 0;
};

TEST_P(WhisperOnGpu, TimesItsLayersAndGivesTheSameBits) {
  if (GetParam().on_gpu == ScaledMMBackend::cublaslt) GTEST_SKIP() << "the library's kernels stand between sections";
  Times times;
  const auto network = GetParam().make(random, GetParam().on_gpu);
  network->layers.place(*gpu);
  State timed(network, {.pool = &pool, .isa = detected_isa(), .observer = &times, .gpu = gpu.get()},
              {.windows = 2, .rows = 3, .cross_storage = DType::f16, .alignment_heads = {}});
  const auto window = mel(107);
  const TokenId token = 7;
  std::vector<float> logits(static_cast<std::size_t>(timed.vocabulary_size())), expected(logits.size());
  // An encoder's window and steps of a decoder: (kernels in sections, those of a trace).
  const auto run = [&](std::vector<float>& to) {
    const WindowId id = timed.encode(window);
    const decode::RowId row = timed.open_row(id);
    const decode::StepScorer::Input input{row, {&token, 1}};
    for (int i = 0; i < 3; ++i) timed.score({&input, 1}, to);
    timed.close_row(row);
    timed.release(id);
  };
  run(logits);  // scratch memory grows, which cuts sections
  times = {};
  std::vector<std::string> trace;
  gpu->trace(&trace);
  run(logits);
  gpu->trace(nullptr);
  EXPECT_EQ(times.sections, 1 + 3) << "the encoder, and steps of the decoder";
  EXPECT_EQ(times.section_kernels, std::ssize(trace));
  EXPECT_GE(times.kernels, std::ssize(trace) / 2);
  EXPECT_LT(times.kernels, std::ssize(trace)) << "caches are written between layers";
  EXPECT_LE(times.seconds, times.section_seconds);
  EXPECT_GE(times.seconds, 0.5 * times.section_seconds);
  for (const char* layer : {"model.encoder.conv1", "model.encoder.layers.1.self_attn", "model.encoder.layers.0.fc1",
                            "model.decoder.layers.1.encoder_attn", "model.decoder.layers.0.fc2", "model.decoder.layer_norm"}) {
    EXPECT_TRUE(times.layers.contains(layer)) << layer;
  }
  times.on = false;
  run(expected);
  expect_same(logits, expected, "timed");
}

TEST_P(WhisperOnGpu, ReportsTheLayerWhoseNumbersOverflow) {
  // Finite, but an input above 1.13 deviations is not after it.
  random.set("model.encoder.layers.1.final_layer_norm.weight", 3, 3e38f);
  const auto broken = state(gpu.get(), 1, 1);
  broken->encode(mel(104));
  const auto fault = broken->take_fault();
  ASSERT_TRUE(fault.has_value());
  const auto on_processor = state(nullptr, 1, 1);
  on_processor->encode(mel(104));
  const auto expected = on_processor->take_fault();
  ASSERT_TRUE(expected.has_value());
  EXPECT_EQ(fault->layer, expected->layer);
}

TEST_P(WhisperOnGpu, LosesOneCallToAKernelThatFails) {
  const auto window = mel(105);
  const auto expected = run(*state(nullptr, 2, 3), window, window);
  for (const int launch : {0, 5, 20}) {
    const auto on_gpu = state(gpu.get(), 2, 3);
    gpu->fail_launch(launch);
    EXPECT_THROW(on_gpu->encode(window), GpuError) << launch;
    gpu->fail_launch(-1);
    expect_same(run(*on_gpu, window, window), expected, "after a failure");
  }
}

// Windows, prompts, steps, alignment: wherever a kernel fails, that request is lost and the next one is not.
TEST_P(WhisperOnGpu, LosesOneRequestToAKernelThatFailsAnywhere) {
  const auto window = mel(106);
  const auto expected = run(*state(nullptr, 2, 3), window, window);
  constexpr int kStep = 7;  // launches
  int lost = 0;
  for (bool failed = true; failed;) {
    const auto on_gpu = state(gpu.get(), 2, 3);
    gpu->fail_launch(kStep * lost);
    failed = false;
    try {
      run(*on_gpu, window, window);
    } catch (const GpuError&) {
      failed = true;
      ++lost;
    }
    gpu->fail_launch(-1);
    expect_same(run(*state(gpu.get(), 2, 3), window, window), expected, "after a failure");
  }
  EXPECT_GT(lost, 10);
}

std::shared_ptr<const Network> static_linked(const RandomCheckpoint& random, ScaledMMBackend backend) {
  auto network = calibrated_network(random, backend);
  layers::link(quantization_layout(network->config), network->layers).value();
  return network;
}
std::shared_ptr<const Network> online(const RandomCheckpoint& random, ScaledMMBackend backend) {
  return online_int8(random, backend);
}

INSTANTIATE_TEST_SUITE_P(
    Precisions, WhisperOnGpu,
    ::testing::Values(Precision{"float32", [](const RandomCheckpoint& random, ScaledMMBackend) { return random.network(); }},
                      Precision{"float16",
                                [](const RandomCheckpoint& random, ScaledMMBackend) {
                                  return Network::load(random.config, random.checkpoint, {.dtype = DType::f16}).value();
                                }},
                      Precision{"int8_online", online}, Precision{"int8_static_linked", static_linked},
                      Precision{"int8_online_mma_sync", online, ScaledMMBackend::mma_sync},
                      Precision{"int8_static_linked_mma_sync", static_linked, ScaledMMBackend::mma_sync},
                      Precision{"int8_online_cublaslt", online, ScaledMMBackend::cublaslt},
                      Precision{"int8_static_linked_cublaslt", static_linked, ScaledMMBackend::cublaslt}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace oasr::models::whisper
