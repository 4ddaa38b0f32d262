// Times of layers in the queue of a GPU: the kernels of a section, with marks between them.
#include <gtest/gtest.h>

#include <map>

#include "kernels/cuda/testing.h"
#include "kernels/rows/op.h"
#include "kernels/testing.h"
#include "testing/environment.h"

namespace oasr::kernels {
namespace {

struct Times : RunObserver {
  void not_finite(std::string_view, std::int64_t) override {}
  void layer_time(std::string_view layer, const LayerCall& call) override {
    calls[std::string(layer)].push_back(call);
    seconds += call.seconds;
    kernels += call.kernels;
  }
  void section_time(double section, std::int64_t count) override {
    ++sections;
    section_seconds += section;
    section_kernels += count;
  }
  std::map<std::string, std::vector<LayerCall>> calls;
  double seconds = 0, section_seconds = 0;
  std::int64_t kernels = 0, section_kernels = 0;
  int sections = 0;
};

class LayerTimes : public OnGpu, public ::testing::WithParamInterface<Starts> {
 protected:
  static constexpr std::int64_t kColumns = 1000;
  static constexpr int kLayers = 12;

  LayerTimes() {
    for (int i = 0; i < kLayers; ++i) names_.push_back("layer " + std::to_string(i));
  }
  void link(ExecContext& context, float* from, float* to, std::int64_t rows, float factor) {
    shift_scale_rows(context, {.x = {from, rows, kColumns, kColumns}, .factor = factor, .y = {to, rows, kColumns, kColumns}});
  }
  // Layers of two kernels each, with one kernel before all and one after all.
  void layers(ExecContext& context, float* a, float* b, std::int64_t rows, bool timed) {
    link(context, a, b, rows, 2.0f);
    for (int i = 0; i < kLayers; ++i) {
      if (timed) gpu_->begin_timed_layer(names_[static_cast<std::size_t>(i)]);
      link(context, b, a, rows, 0.75f);
      link(context, a, b, rows, 1.25f);
      if (timed) gpu_->end_timed_layer(rows, {.operations = 5, .bytes = 6});
    }
    link(context, b, a, rows, 3.0f);
  }
  std::int64_t kernels_of_all() const { return 2 * kLayers + 2; }

  std::vector<std::string> names_;  // where the queue may keep their addresses
  ExecContext host_{&pool_, detected_isa()};
  Starts starts_ = GetParam();
};

TEST_P(LayerTimes, AddUpToAtMostTheirSectionAndChangeNoBit) {
  constexpr std::int64_t kRows = 3000;
  for (int turn = 0; turn < 3; ++turn) {
    std::vector<float> x = random_floats(kRows * kColumns, 3), y(x.size());
    auto a = upload(x), b = upload(y);
    std::vector<std::string> trace;
    gpu_->trace(&trace);
    const auto before = gpu_->counts();
    gpu_->as_graph(starts_, [&] { layers(context_, a.data(), b.data(), kRows, true); });
    const auto after = gpu_->counts();
    gpu_->trace(nullptr);
    Times times;
    gpu_->wait();
    gpu_->tell(times);
    EXPECT_EQ(after.graphs - before.graphs, 1);
    EXPECT_EQ(after.alone - before.alone, 0);
    EXPECT_EQ(after.kernels - before.kernels, std::ssize(trace));
    EXPECT_EQ(std::ssize(trace), kernels_of_all());
    EXPECT_EQ(times.sections, 1);
    EXPECT_EQ(times.section_kernels, kernels_of_all());
    EXPECT_EQ(times.kernels, 2 * kLayers);
    ASSERT_EQ(std::ssize(times.calls), kLayers);
    for (const auto& [layer, calls] : times.calls) {
      ASSERT_EQ(calls.size(), 1u) << layer;
      EXPECT_EQ(calls[0].rows, kRows) << layer;
      EXPECT_EQ(calls[0].kernels, 2) << layer;
      EXPECT_EQ(calls[0].work.operations, 5) << layer;
      EXPECT_GT(calls[0].seconds, 1e-6) << layer << ": two kernels that move 24 MB each";
    }
    EXPECT_LE(times.seconds, times.section_seconds);
    EXPECT_GE(times.seconds, 0.5 * times.section_seconds) << "24 of 26 kernels";
    layers(host_, x.data(), y.data(), kRows, false);
    EXPECT_EQ(first_difference(a.values(), x), -1);
    EXPECT_EQ(first_difference(b.values(), y), -1);
    Times again;
    gpu_->tell(again);
    EXPECT_EQ(again.sections, 0) << "told once";
  }
}

TEST_P(LayerTimes, FollowTheWorkOfALayer) {
  constexpr std::int64_t kRows = 20'000;
  const std::vector<float> x(kRows * kColumns, 1.0f);
  auto a = upload(x), b = upload(x);
  const std::string small = "small", large = "large";
  for (int turn = 0; turn < 3; ++turn) {
    gpu_->as_graph(starts_, [&] {
      gpu_->begin_timed_layer(small);
      link(context_, a.data(), b.data(), 10, 1.0f);
      gpu_->end_timed_layer(10, {});
      gpu_->begin_timed_layer(large);
      link(context_, a.data(), b.data(), kRows, 1.0f);
      gpu_->end_timed_layer(kRows, {});
    });
    Times times;
    gpu_->wait();
    gpu_->tell(times);
    if (turn == 0) continue;  // modules are loaded
    EXPECT_GT(times.calls[large][0].seconds, 2 * times.calls[small][0].seconds) << "160 MB and 80 KB";
  }
}

TEST_P(LayerTimes, AreKeptOverCopiesAndOutsideSections) {
  constexpr std::int64_t kRows = 50;
  std::vector<float> x = random_floats(kRows * kColumns, 4), y(x.size()), middle(x.size());
  auto a = upload(x), b = upload(y);
  const std::string outside = "outside", cut = "cut";
  gpu_->begin_timed_layer(outside);
  link(context_, a.data(), b.data(), kRows, 0.5f);
  gpu_->end_timed_layer(kRows, {});
  link(context_, b.data(), a.data(), kRows, 3.0f);  // waits with the layer before it
  gpu_->as_graph(starts_, [&] {
    gpu_->begin_timed_layer(cut);
    link(context_, a.data(), b.data(), kRows, 0.5f);
    gpu_->download(middle.data(), b.data(), middle.size() * sizeof(float));
    link(context_, b.data(), a.data(), kRows, 0.5f);
    gpu_->end_timed_layer(kRows, {});
  });
  Times times;
  gpu_->wait();
  gpu_->tell(times);
  EXPECT_EQ(times.calls[outside].at(0).kernels, 1);
  EXPECT_EQ(times.calls[cut].at(0).kernels, 2);
  EXPECT_GT(times.calls[cut].at(0).seconds, 0);
  EXPECT_EQ(times.section_kernels, 4);
  link(host_, x.data(), y.data(), kRows, 0.5f);
  link(host_, y.data(), x.data(), kRows, 3.0f);
  link(host_, x.data(), y.data(), kRows, 0.5f);
  EXPECT_EQ(first_difference(middle, y), -1);
  link(host_, y.data(), x.data(), kRows, 0.5f);
  EXPECT_EQ(first_difference(a.values(), x), -1);
}

TEST_P(LayerTimes, AreDroppedWithASectionThatFails) {
  constexpr std::int64_t kRows = 5;
  const std::vector<float> x = random_floats(kRows * kColumns, 5);
  auto a = upload(x), b = upload(x);
  for (const int launch : {0, 1, 3, 10}) {
    gpu_->fail_launch(launch);
    EXPECT_THROW(gpu_->as_graph(starts_, [&] { layers(context_, a.data(), b.data(), kRows, true); }), GpuError);
    gpu_->fail_launch(-1);
    Times none, times;
    gpu_->wait();
    gpu_->tell(none);
    EXPECT_EQ(none.sections, 0) << launch;
    gpu_->as_graph(starts_, [&] { layers(context_, a.data(), b.data(), kRows, true); });
    gpu_->wait();
    gpu_->tell(times);
    EXPECT_EQ(times.kernels, 2 * kLayers) << launch;
    EXPECT_LE(times.seconds, times.section_seconds) << launch;
  }
}

TEST_P(LayerTimes, AreThereWithoutGraphs) {
  const testing::Variable graphs("OASR_GPU_GRAPHS", "0");
  gpu_ = Gpu::open(0).value();
  context_.gpu = gpu_.get();
  EXPECT_FALSE(gpu_->starts_graphs());
  constexpr std::int64_t kRows = 3000;
  std::vector<float> x = random_floats(kRows * kColumns, 6), y(x.size());
  auto a = upload(x), b = upload(y);
  const auto before = gpu_->counts();
  gpu_->as_graph(starts_, [&] { layers(context_, a.data(), b.data(), kRows, true); });
  EXPECT_EQ(gpu_->counts().graphs, before.graphs);
  EXPECT_EQ(gpu_->counts().alone - before.alone, kernels_of_all());
  Times times;
  gpu_->wait();
  gpu_->tell(times);
  EXPECT_EQ(times.kernels, 2 * kLayers);
  EXPECT_LE(times.seconds, times.section_seconds);
  EXPECT_GE(times.seconds, 0.5 * times.section_seconds);
  layers(host_, x.data(), y.data(), kRows, false);
  EXPECT_EQ(first_difference(a.values(), x), -1);
}

TEST_P(LayerTimes, CostNothingOnceNobodyAsks) {
  constexpr std::int64_t kRows = 7;
  const std::vector<float> x = random_floats(kRows * kColumns, 7);
  auto a = upload(x), b = upload(x);
  gpu_->as_graph(starts_, [&] { layers(context_, a.data(), b.data(), kRows, true); });
  Times timed, untimed;
  gpu_->wait();
  gpu_->tell(timed);
  for (int i = 0; i < 3; ++i) gpu_->as_graph(starts_, [&] { layers(context_, a.data(), b.data(), kRows, false); });
  gpu_->wait();
  gpu_->tell(untimed);
  EXPECT_EQ(timed.sections, 1);
  EXPECT_EQ(untimed.sections, 0);
  EXPECT_EQ(gpu_->counts().graphs, 3) << "the timed one, and those that come again";
}

INSTANTIATE_TEST_SUITE_P(Starts, LayerTimes, ::testing::Values(Starts::after, Starts::early),
                         [](const auto& starts) { return starts.param == Starts::early ? "early" : "after"; });

}  // namespace
}  // namespace oasr::kernels
