#include <gtest/gtest.h>

#include "kernels/ctc_beam/testing.h"
#include "kernels/cuda/testing.h"

namespace oasr::kernels {
namespace {

class CtcBeamOnGpu : public OnGpu {
 protected:
  void expect_the_searchs_bits(const CtcBeamCase& test, const std::string& how) {
    auto frames = upload(test.frames());
    auto memory = room<float>(test.memory_floats());
    ctc_prefix_beam(*gpu_, test.arguments(frames.data(), memory.data(), test.places()));
    test.expect_the_hypotheses(memory.values(), how);
  }
};

TEST_F(CtcBeamOnGpu, GivesTheBitsOfTheHostsSearch) {
  for (const CtcBeamCase& test : ctc_beam_cases()) expect_the_searchs_bits(test, " on a GPU");
}

// More utterances than multiprocessors, several times: a race would show now and then.
TEST_F(CtcBeamOnGpu, GivesTheBitsOfTheHostsSearchOfManyUtterancesEveryTime) {
  CtcBeamCase test;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const int frames = 1 + static_cast<int>(seed * 13 % 150);
    test.utterances.push_back(decode::random_rows(500 + seed, frames, 40, seed % 2 == 0 ? 2 : 7, 3));
  }
  for (int i = 0; i < 5; ++i) expect_the_searchs_bits(test, " time " + std::to_string(i));
}

}  // namespace
}  // namespace oasr::kernels
