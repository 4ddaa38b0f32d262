#include "device/gpu.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "device/gpu_graphs.h"
#include "device/memory.h"
#include "testing/environment.h"

namespace oasr {
namespace {

struct Found : RunObserver {
  void not_finite(std::string_view layer, std::int64_t row) override { rows[std::string(layer)] = row; }
  std::map<std::string, std::int64_t> rows;
};

TEST(GpuReport, SaysWhyThereIsNoGpu) {
  const GpuReport report = gpu_report();
  EXPECT_EQ(report.gpus.empty(), !report.problem.empty());
  EXPECT_EQ(report.built, !report.architectures.empty());
}

TEST(GpuOpen, NamesARemedyWhereItFails) {
  const auto beyond = Gpu::open(1000);
  ASSERT_FALSE(beyond.has_value());
  EXPECT_FALSE(beyond.error().remedy.empty());
  EXPECT_EQ(beyond.error().code, gpu_report().gpus.empty() ? ErrorCode::unsupported : ErrorCode::not_found);
}

TEST(GpuOpen, RefusesAWordForGraphsThatIsNone) {
  const oasr::testing::Variable graphs("OASR_GPU_GRAPHS", "yes");
  const auto wanted = gpu_graphs();
  ASSERT_FALSE(wanted.has_value());
  EXPECT_EQ(wanted.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(wanted.error().what.find("'yes'"), std::string::npos) << wanted.error().what;
  EXPECT_EQ(wanted.error().where, "OASR_GPU_GRAPHS");
  if (!gpu_report().built) GTEST_SKIP() << "built without CUDA";
  const auto opened = Gpu::open(0);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().where, "OASR_GPU_GRAPHS");
}

TEST(MemoryOfTheHost, IsMovedAndCleared) {
  Memory memory(nullptr, 100);
  clear(nullptr, memory.data(), 100);
  const std::byte* at = memory.data();
  Memory moved(std::move(memory));
  EXPECT_EQ(moved.data(), at);
  EXPECT_EQ(moved.size(), 100u);
  EXPECT_EQ(moved.data()[99], std::byte{0});
}

class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = Gpu::open(0);
    if (!opened) GTEST_SKIP() << "no GPU: " << opened.error().what;
    gpu = std::move(*opened);
  }
  std::unique_ptr<Gpu> gpu;
};

TEST_F(OnGpu, CopiesThereAndBackInOrder) {
  // More than the staging memory holds, in pieces that are changed right after upload().
  constexpr std::size_t kPieces = 40, kPiece = 300'000;
  Memory memory(gpu.get(), kPieces * kPiece * sizeof(float));
  std::vector<float> piece(kPiece);
  for (std::size_t i = 0; i < kPieces; ++i) {
    std::iota(piece.begin(), piece.end(), static_cast<float>(1000 * i));
    gpu->upload(memory.data() + i * kPiece * sizeof(float), piece.data(), kPiece * sizeof(float));
    std::fill(piece.begin(), piece.end(), -1.0f);
  }
  std::vector<float> back(kPieces * kPiece);
  gpu->download(back.data(), memory.data(), memory.size());
  for (std::size_t i = 0; i < back.size(); ++i) {
    ASSERT_EQ(back[i], static_cast<float>(1000 * (i / kPiece)) + static_cast<float>(i % kPiece)) << i;
  }
  const std::vector<float> whole(5'000'000, 3.0f);  // larger than the staging memory
  gpu->upload(memory.data(), whole.data(), whole.size() * sizeof(float));
  gpu->copy(memory.data() + 8, 16, memory.data(), 4, 4, 3);
  gpu->zero(memory.data(), 4);
  gpu->download(back.data(), memory.data(), 64);
  EXPECT_EQ(back[0], 0.0f);
  EXPECT_EQ(back[1], 3.0f);
}

TEST_F(OnGpu, KeepsWhatIsNotFiniteUnderTheNameOfItsLayer) {
  const std::string first = "encoder.fc1", second = "encoder.fc2";
  const std::int32_t row = 7;
  gpu->at_layer(first);
  gpu->at_layer(second);
  gpu->upload(gpu->not_finite_row(), &row, sizeof row);
  Found before, found, after;
  gpu->tell(before);  // nothing until the queue was waited for
  gpu->wait();
  gpu->tell(found);
  gpu->wait();
  gpu->tell(after);
  EXPECT_TRUE(before.rows.empty());
  EXPECT_EQ(found.rows, (std::map<std::string, std::int64_t>{{"encoder.fc2", 7}}));
  EXPECT_TRUE(after.rows.empty());
}

TEST_F(OnGpu, ForgetsWhatNobodyWasToldOf) {
  const std::string layer = "encoder.fc1";
  const std::int32_t row = 7;
  const auto find = [&] {
    gpu->at_layer(layer);
    gpu->upload(gpu->not_finite_row(), &row, sizeof row);
  };
  Found first, second;
  find();
  gpu->forget();
  gpu->wait();
  gpu->tell(first);
  EXPECT_TRUE(first.rows.empty());
  find();  // later words come through
  gpu->wait();
  gpu->tell(second);
  EXPECT_EQ(second.rows, (std::map<std::string, std::int64_t>{{"encoder.fc1", 7}}));
}

TEST_F(OnGpu, RefusesMoreMemoryThanThereIsAndGoesOn) {
  EXPECT_THROW(
      {
        try {
          gpu->allocate(std::size_t{1} << 50);
        } catch (const GpuOutOfMemory& error) {
          EXPECT_NE(std::string(error.what()).find("MiB asked for"), std::string::npos);
          throw;
        }
      },
      GpuOutOfMemory);
  Memory memory(gpu.get(), 1024);
  clear(gpu.get(), memory.data(), 1024);
  gpu->wait();
}

TEST_F(OnGpu, GivesMemoryThatCameBackToTheNextOfItsSize) {
  constexpr std::size_t kBytes = 32 << 20;
  const std::size_t before = gpu->counts().kept;  // not what is free: that changes with other programs on the card
  std::byte* first = nullptr;
  {
    Memory memory(gpu.get(), kBytes);
    first = memory.data();
    EXPECT_EQ(gpu->counts().kept, before);
  }
  EXPECT_EQ(gpu->counts().kept, before + kBytes);
  EXPECT_GE(gpu->free_bytes(), before + kBytes) << "what is kept counts as free";
  Memory larger(gpu.get(), 2 * kBytes), same(gpu.get(), kBytes - 5);
  EXPECT_NE(larger.data(), first);
  EXPECT_EQ(same.data(), first);
  EXPECT_EQ(gpu->counts().kept, before);
}

TEST_F(OnGpu, GivesScratchThatKeepsItsSize) {
  std::byte* large = gpu->scratch(1 << 20);
  EXPECT_EQ(gpu->scratch(100), large);
}

}  // namespace
}  // namespace oasr
