#include "eval/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace oasr::eval {
namespace {

// Numbers below `n`. The standard fixes the engine's numbers, not its distributions'.
class Draw {
 public:
  Draw(std::uint64_t seed, std::size_t n) : engine_(seed), n_(n) {}
  std::size_t operator()() {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::size_t>((static_cast<Wide>(engine_()) * n_) >> 64);
  }

 private:
  std::mt19937_64 engine_;
  std::size_t n_;
};

std::optional<double> share_percent(const Share& share) {
  if (share.reference == 0) return std::nullopt;
  return 100.0 * static_cast<double>(share.errors) / static_cast<double>(share.reference);
}

Interval ends(std::vector<double>& rates) {
  if (rates.empty()) return {};
  std::sort(rates.begin(), rates.end());
  const auto n = static_cast<double>(rates.size());
  const auto low = static_cast<std::size_t>(std::floor(0.025 * n));
  const auto high = static_cast<std::size_t>(std::ceil(0.975 * n)) - 1;
  return {rates[low], rates[high]};
}

void add_share(Share& sum, const Share& share) {
  sum.errors += share.errors;
  sum.reference += share.reference;
}

}  // namespace

std::vector<Interval> intervals(std::span<const std::vector<Share>> shares, int resamples,
                                std::uint64_t seed) {
  const auto utterances = shares.empty() ? 0 : shares[0].size();
  std::vector<std::vector<double>> rates(shares.size());
  Draw draw(seed, utterances);
  for (int i = 0; utterances > 0 && i < resamples; ++i) {
    std::vector<Share> sums(shares.size());
    for (std::size_t k = 0; k < utterances; ++k) {
      const auto at = draw();
      for (std::size_t rate = 0; rate < shares.size(); ++rate) add_share(sums[rate], shares[rate][at]);
    }
    for (std::size_t rate = 0; rate < shares.size(); ++rate) {
      if (const auto value = share_percent(sums[rate])) rates[rate].push_back(*value);
    }
  }
  std::vector<Interval> found;
  for (auto& values : rates) found.push_back(ends(values));
  return found;
}

Paired paired_interval(std::span<const Share> a, std::span<const Share> b, int resamples,
                       std::uint64_t seed) {
  std::vector<double> differences;
  Draw draw(seed, a.size());
  for (int i = 0; !a.empty() && i < resamples; ++i) {
    Share sum_a, sum_b;
    for (std::size_t k = 0; k < a.size(); ++k) {
      const auto at = draw();
      add_share(sum_a, a[at]);
      add_share(sum_b, b[at]);
    }
    const auto rate_a = share_percent(sum_a), rate_b = share_percent(sum_b);
    if (rate_a && rate_b) differences.push_back(*rate_b - *rate_a);
  }
  const auto [low, high] = ends(differences);
  if (!low) return {};
  const auto count = [&](auto fits) {
    return static_cast<double>(std::count_if(differences.begin(), differences.end(), fits));
  };
  const double below = count([](double d) { return d <= 0; });
  const double above = count([](double d) { return d >= 0; });
  const double n = static_cast<double>(differences.size());
  return {low, high, std::min(1.0, 2 * std::min(below, above) / n)};
}

}  // namespace oasr::eval
