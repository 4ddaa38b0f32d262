#include <limits>
#include <string>

#include "kernels/cuda/testing.h"
#include "kernels/norm/op.h"
#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

// [M, D] with rows that lie `gap` floats more than D apart, so that a read or write out of place is seen.
class NormOnGpu : public OnGpu {
 protected:
  void expect_equal(std::int64_t m, std::int64_t d, std::int64_t gap, bool in_place,
                    const char* values = "") {
    const std::string what =
        "m " + std::to_string(m) + " d " + std::to_string(d) + " gap " + std::to_string(gap);
    const std::int64_t ld = d + gap;
    auto x = random_floats(m * ld, static_cast<unsigned>(m * 131 + d), 3.0f);
    if (std::string_view(values) == "odd") {
      x[static_cast<std::size_t>(m / 2 * ld)] = std::nanf("");
      x[static_cast<std::size_t>((m - 1) * ld + d - 1)] = std::numeric_limits<float>::infinity();
    }
    if (std::string_view(values) == "flat") {
      for (std::int64_t i = 0; i < d; ++i) x[static_cast<std::size_t>(i)] = 1e-30f;
    }
    const auto gamma = random_floats(d, 1), beta = random_floats(d, 2);
    std::vector<float> expected(x.size(), 77.0f);
    if (in_place) expected = x;
    LayerNormArgs args{.x = in_place ? expected.data() : x.data(),
                       .ldx = ld,
                       .m = m,
                       .d = d,
                       .gamma = gamma.data(),
                       .beta = beta.data(),
                       .y = expected.data(),
                       .ldy = ld,
                       .activation = some_activation(static_cast<unsigned>(m * d))};
    layer_norm_reference(args);

    auto gpu_gamma = upload(gamma), gpu_beta = upload(beta);
    for (int run = 0; run < 2; ++run) {
      auto gpu_x = upload(x), gpu_y = upload(std::vector<float>(x.size(), 77.0f));
      args.x = gpu_x.data();
      args.y = in_place ? gpu_x.data() : gpu_y.data();
      args.gamma = gpu_gamma.data();
      args.beta = gpu_beta.data();
      layer_norm(context_, args);
      EXPECT_EQ(first_difference((in_place ? gpu_x : gpu_y).values(), expected), -1)
          << what << " run " << run;
    }
  }
};

// What a kernel may take of shared memory is one number for all queues of a card.
TEST_F(NormOnGpu, TakesMuchSharedMemoryWhereAnotherQueueTookLess) {
  expect_equal(5, 5000, 0, false);
  auto other = Gpu::open(0).value();
  std::swap(gpu_, other);
  context_.gpu = gpu_.get();
  expect_equal(5, 2500, 0, false);
  std::swap(gpu_, other);
  context_.gpu = gpu_.get();
  expect_equal(5, 5000, 0, false);
}

TEST_F(NormOnGpu, EqualsTheReferenceOnRaggedShapes) {
  for (const std::int64_t m : {1, 2, 3, 4, 5, 7, 8, 9, 31, 33, 64, 130}) {
    for (const std::int64_t d : {1, 3, 15, 16, 17, 33, 80, 256, 384, 511, 512, 768, 900, 1024, 1280, 2048}) {
      for (const std::int64_t gap : {0, 3, 4}) expect_equal(m, d, gap, (m + d) % 2 == 0);
    }
  }
  expect_equal(1500, 512, 0, true);
  expect_equal(700, 2048, 16, false);
}

// Of more rows than a GPU holds at once the kernels of the models' widths keep less in registers.
TEST_F(NormOnGpu, EqualsTheReferenceOfManyRowsOfTheModelsWidths) {
  for (const std::int64_t d : {256, 384, 512, 768, 1024, 1280, 2048}) {
    expect_equal(4801, d, 0, d % 512 == 0);
    expect_equal(4801, d, 4, false, "odd");
  }
}

TEST_F(NormOnGpu, EqualsTheReferenceOnLongRowsAndMany) {
  for (const std::int64_t m : {1, 3, 4, 9}) {
    for (const std::int64_t d : {2052, 2064, 4096}) expect_equal(m, d, 4, m % 2 == 0);
  }
  for (const std::int64_t d : {516, 1280}) expect_equal(2051, d, 0, d == 516);
  expect_equal(2051, 512, 4, true);
}

TEST_F(NormOnGpu, EqualsTheReferenceWhereRowsDoNotFitIntoSharedMemory) {
  for (const bool in_place : {false, true}) {
    expect_equal(5, 12'000, 4, in_place);
    expect_equal(6, 20'001, 0, in_place);
    expect_equal(3, 40'000, 0, in_place);
  }
}

TEST_F(NormOnGpu, KeepsOtherRowsWhereOneIsNotFinite) {
  expect_equal(9, 384, 0, false, "odd");
  expect_equal(9, 37, 1, true, "odd");
}

TEST_F(NormOnGpu, EqualsTheReferenceOnTinyVariances) { expect_equal(3, 256, 0, false, "flat"); }

TEST_F(NormOnGpu, TakesNoRows) {
  layer_norm(context_, {.m = 0, .d = 16});
  gpu_->wait();
}

}  // namespace
}  // namespace oasr::kernels
