// Sections of a queue, whose kernels start together: the same memory as kernels that start one by one.
#include <gtest/gtest.h>

#include "kernels/cuda/testing.h"
#include "kernels/rows/op.h"
#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

// A chain: every link is y = factor · x of the one before, so that a kernel which does not wait is seen.
class SectionsOnGpu : public OnGpu, public ::testing::WithParamInterface<Starts> {
 protected:
  static constexpr std::int64_t kColumns = 1000;
  static constexpr int kLinks = 24;

  void link(ExecContext& context, float* from, float* to, std::int64_t rows, float factor) {
    shift_scale_rows(context, {.x = {from, rows, kColumns, kColumns},
                               .factor = factor,
                               .y = {to, rows, kColumns, kColumns}});
  }
  // The chain, back and forth between two pieces of memory; ends in a.
  void chain(ExecContext& context, float* a, float* b, std::int64_t rows, float factor) {
    for (int i = 0; i < kLinks; ++i) i % 2 == 0 ? link(context, a, b, rows, factor) : link(context, b, a, rows, factor);
  }

  ExecContext host_{&pool_, detected_isa()};
  Starts starts_ = GetParam();
};

TEST_P(SectionsOnGpu, GiveWhatSingleKernelsGive) {
  // Other rows, factors and memory for the same kernels: first alone, then as a new graph, then changed.
  for (const std::int64_t rows : {1, 300, 300, 2000, 7, 2000}) {
    for (const float factor : {0.75f, 1.25f}) {
      std::vector<float> x = random_floats(rows * kColumns, static_cast<unsigned>(rows)), y(x.size());
      auto there = upload(x), other = upload(y);
      gpu_->as_graph(starts_, [&] { chain(context_, there.data(), other.data(), rows, factor); });
      chain(host_, x.data(), y.data(), rows, factor);
      EXPECT_EQ(first_difference(there.values(), x), -1) << rows << " rows by " << factor;
      EXPECT_EQ(first_difference(other.values(), y), -1) << rows << " rows by " << factor;
    }
  }
}

TEST_P(SectionsOnGpu, AreCutByCopiesAndKeepTheOrder) {
  for (int turn = 0; turn < 4; ++turn) {
    constexpr std::int64_t kRows = 500;
    std::vector<float> x = random_floats(kRows * kColumns, 5), y = random_floats(kRows * kColumns, 6), z(x.size());
    auto a = upload(x), b = upload(z);
    std::vector<float> middle(x.size());
    gpu_->as_graph(starts_, [&] {
      chain(context_, a.data(), b.data(), kRows, 0.5f);
      gpu_->download(middle.data(), a.data(), middle.size() * sizeof(float));
      chain(context_, a.data(), b.data(), kRows, 1.5f);
      gpu_->upload(a.data(), y.data(), y.size() * sizeof(float));
      link(context_, a.data(), b.data(), kRows, 3.0f);
    });
    chain(host_, x.data(), z.data(), kRows, 0.5f);
    EXPECT_EQ(first_difference(middle, x), -1);
    link(host_, y.data(), z.data(), kRows, 3.0f);
    EXPECT_EQ(first_difference(a.values(), y), -1);
    EXPECT_EQ(first_difference(b.values(), z), -1);
  }
}

TEST_P(SectionsOnGpu, StartBeforeTheirMemoryIsFreed) {
  for (int turn = 0; turn < 4; ++turn) {
    constexpr std::int64_t kRows = 2000;
    std::vector<float> x = random_floats(kRows * kColumns, 7), y(x.size());
    auto a = upload(x);
    gpu_->as_graph(starts_, [&] {
      Memory other(gpu_.get(), x.size() * sizeof(float));
      chain(context_, a.data(), reinterpret_cast<float*>(other.data()), kRows, 1.125f);
    });
    chain(host_, x.data(), y.data(), kRows, 1.125f);
    EXPECT_EQ(first_difference(a.values(), x), -1);
  }
}

TEST_P(SectionsOnGpu, MayBeOfMoreKindsThanAreKept) {
  // Sections of 2 to 200 links: of their graphs the oldest go.
  std::vector<float> x = random_floats(kColumns, 8), y(x.size());
  auto a = upload(x), b = upload(y);
  for (int turn = 0; turn < 3; ++turn) {
    for (int links = 2; links <= 200; links += 2) {
      const float factor = links % 4 == 0 ? 2.0f : 0.5f;  // exact
      gpu_->as_graph(starts_, [&] {
        for (int i = 0; i < links; i += 2) {
          link(context_, a.data(), b.data(), 1, factor);
          link(context_, b.data(), a.data(), 1, 1 / factor);
        }
      });
    }
  }
  EXPECT_EQ(first_difference(a.values(), x), -1);
}

TEST_P(SectionsOnGpu, AreDroppedWhenAKernelFails) {
  const std::vector<float> x = random_floats(kColumns, 9);
  auto a = upload(x), b = upload(x);
  std::vector<std::string> kernels;
  gpu_->trace(&kernels);
  for (int turn = 0; turn < 3; ++turn) {
    gpu_->fail_launch(5);
    EXPECT_THROW(gpu_->as_graph(starts_, [&] { chain(context_, a.data(), b.data(), 1, 2.0f); }), GpuError);
    gpu_->fail_launch(-1);
    EXPECT_EQ(kernels.size(), 5u) << "the kernels before it";
    gpu_->as_graph(starts_, [&] {
      link(context_, b.data(), a.data(), 1, 0.5f);
      link(context_, a.data(), b.data(), 1, 2.0f);
    });
    EXPECT_EQ(first_difference(b.values(), x), -1) << "b is what it was: kernels of the failed section ran";
    kernels.clear();
  }
  gpu_->trace(nullptr);
}

INSTANTIATE_TEST_SUITE_P(Starts, SectionsOnGpu, ::testing::Values(Starts::after, Starts::early),
                         [](const auto& starts) { return starts.param == Starts::early ? "early" : "after"; });

}  // namespace
}  // namespace oasr::kernels
