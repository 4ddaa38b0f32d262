#include "features/mel_filters.h"

#include <gtest/gtest.h>

#include "testing/arrays.h"
#include "testing/paths.h"

namespace oasr {
namespace {

TEST(SlaneyMelFilters, HaveUnitAreaAndWeighNeitherDcNorNyquist) {
  for (const int n_mels : {80, 128}) {
    const auto filters = slaney_mel_filters(n_mels);
    ASSERT_EQ(filters.size(), static_cast<std::size_t>(n_mels));
    for (const MelFilter& filter : filters) {
      ASSERT_FALSE(filter.weights.empty());
      EXPECT_GE(filter.first_bin, 1);
      EXPECT_LE(filter.first_bin + static_cast<int>(filter.weights.size()), 200);
    }
    // The last triangle is much wider than a bin: its sum times 40 Hz is close to its area, 1.
    float sum = 0;
    for (const float weight : filters.back().weights) sum += weight;
    EXPECT_NEAR(sum * 40, 1.0, 0.01);
  }
}

TEST(SlaneyMelFilters, AreThoseOfWhispersTable) {
  OASR_REQUIRE_FULL_DATA();
  const auto file = *testing::full_data() / "data/tokenizers_vocab/whisper/mel_filters.npz";
  for (const int n_mels : {80, 128}) {
    const auto table = testing::read_array(file, "mel_" + std::to_string(n_mels));
    std::vector<float> dense(static_cast<std::size_t>(n_mels) * 201);
    const auto filters = slaney_mel_filters(n_mels);
    for (std::size_t mel = 0; mel < filters.size(); ++mel) {
      const auto at = mel * 201 + static_cast<std::size_t>(filters[mel].first_bin);
      std::copy(filters[mel].weights.begin(), filters[mel].weights.end(),
                dense.begin() + static_cast<std::ptrdiff_t>(at));
    }
    ASSERT_EQ(table.values.size(), dense.size());
    for (std::size_t i = 0; i < dense.size(); ++i) {
      // libm's exp and log may differ from numpy's in the last place of the edges, and a weight
      // is a difference of edges of up to 8000 Hz over a width of at least 40 Hz.
      EXPECT_NEAR(dense[i], table.values[i], 1e-7 * table.values[i]) << n_mels << " at " << i;
    }
  }
}

}  // namespace
}  // namespace oasr
