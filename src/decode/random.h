// Random numbers by counter: a number is a pure function of its key, never of what ran before.
#pragma once

#include <cstdint>

namespace oasr::decode {

// Names one random number of a recording, so that sampling does not depend on other recordings,
// batching or order.
struct RandomKey {
  std::uint64_t seed = 0;     // the caller's
  std::uint32_t window = 0;   // of the recording, counted from 0
  std::uint32_t attempt = 0;  // place in the list of temperatures
  std::uint32_t row = 0;      // sample of best_of
  std::uint32_t step = 0;     // token
};

// A finaliser of MurmurHash3's kind with the constants of SplitMix64 (Steele, Lea, Flood 2014).
inline std::uint64_t mix64(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Uniform in [0, 1), 53 bits.
inline double uniform(const RandomKey& key) {
  std::uint64_t x = mix64(key.seed);
  x = mix64(x ^ (std::uint64_t{key.window} << 32 | key.attempt));
  x = mix64(x ^ (std::uint64_t{key.row} << 32 | key.step));
  return static_cast<double>(x >> 11) * 0x1.0p-53;
}

}  // namespace oasr::decode
