#include <gtest/gtest.h>

#include "base/fs.h"
#include "base/json.h"
#include "kernels/ctc_beam/testing.h"
#include "testing/arrays.h"
#include "testing/paths.h"

namespace oasr::kernels {
namespace {

void expect_the_searchs_bits(const CtcBeamCase& test) {
  std::vector<float> frames = test.frames();
  const auto places = test.places();
  for (const bool backwards : {false, true}) {
    // Two numbers of the frames lie in a node.
    std::vector<double> memory(static_cast<std::size_t>(test.memory_floats() / 2 + 1), std::nan(""));
    auto* floats = reinterpret_cast<float*>(memory.data());
    ctc_prefix_beam_reference(test.arguments(frames.data(), floats, places), backwards);
    test.expect_the_hypotheses({floats, floats + test.memory_floats()}, backwards ? " backwards" : " forwards");
  }
}

// What threads of a GPU do side by side gives the same whichever comes first.
TEST(CtcBeam, GivesTheBitsOfTheHostsSearchInAnyOrderOfItsItems) {
  for (const CtcBeamCase& test : ctc_beam_cases()) expect_the_searchs_bits(test);
}

TEST(CtcBeam, GivesTheBitsOfTheHostsSearchOnRealPosteriors) {
  const auto items = parse_json(*read_text_file(testing::test_data("ctc/an4_search.json")), "golden").value();
  CtcBeamCase test;
  for (const Json& item : items) {
    const auto array = testing::read_array(testing::test_data("ctc/an4_log_probs.npz"), item.at("id").get<std::string>());
    test.utterances.push_back({array.floats(), static_cast<int>(array.shape[1])});
  }
  ASSERT_GT(test.rows(), 50);
  expect_the_searchs_bits(test);
}

}  // namespace
}  // namespace oasr::kernels
