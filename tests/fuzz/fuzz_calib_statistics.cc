// Fuzzes files of input statistics: what is accepted is consistent and can be used and added to.
#include <cstdlib>

#include "calib/observers.h"
#include "calib/statistics_file.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void use(oasr::calib::InputStatistics statistics) {
  const auto histogram = statistics.histogram();
  const auto rows = static_cast<std::uint64_t>(statistics.rows());
  require(histogram.count() == rows * static_cast<std::uint64_t>(statistics.channels()));
  for (const auto& observer : oasr::calib::observers()) {
    const float amax = observer.amax(histogram);
    require(amax > 0 && amax - amax == 0);
    require(oasr::calib::examine(histogram, amax).clipped <= 1);
  }
  const std::vector<int> exponents(static_cast<std::size_t>(statistics.channels()), 3);
  if (statistics.has_channel_histograms()) {
    require(statistics.scaled_histogram(exponents) == histogram.scaled(-3));
  }
  const std::vector<float> row(exponents.size(), 1.0f);
  static oasr::ThreadPool pool(1);
  require(!statistics.add(pool, {row.data(), 1, statistics.channels(), statistics.channels()}));
  require(statistics.histogram().amax() >= 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span input(reinterpret_cast<const std::byte*>(data), size);
  const auto statistics = oasr::calib::read_statistics(oasr::FileBytes{"fuzz", input, nullptr}, "{}");
  if (!statistics || !*statistics) return 0;
  for (const auto& [path, layer] : (*statistics)->layers) use(layer);
  return 0;
}
