#include "device/kernel_gaps.h"

#include <gmock/gmock.h>

#include <set>

namespace oasr {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;

GpuInfo card(const char* name, int major, int minor, int index = 0) {
  return {.index = index, .name = name, .major = major, .minor = minor};
}

TEST(KernelGaps, AreDeclaredOnceEachWithAReason) {
  std::set<std::string_view> names;
  for (const KernelGap& gap : kKernelGaps) {
    EXPECT_TRUE(names.insert(gap.name).second) << gap.name;
    EXPECT_FALSE(gap.op.empty() || gap.why.empty()) << gap.name;
    EXPECT_TRUE(gap.name.ends_with("-sm75")) << gap.name;
    EXPECT_EQ(gap.below, 80) << gap.name;  // the generation after 7.5
  }
}

TEST(KernelGaps, AreThoseOfTheCardsGeneration) {
  EXPECT_EQ(kernel_gaps(card("Tesla T4", 7, 5)).size(), kKernelGaps.size());
  EXPECT_EQ(kernel_gaps(card("Tesla V100", 7, 0)).size(), kKernelGaps.size());
  for (const auto& [major, minor] :
       {std::pair{8, 0}, {8, 6}, {8, 7}, {8, 9}, {9, 0}, {10, 0}, {10, 3}, {12, 0}}) {
    EXPECT_TRUE(kernel_gaps(card("card", major, minor)).empty()) << major << "." << minor;
  }
}

TEST(KernelGaps, RefuseACardByNameWithTheRemedy) {
  const Status refused = check_kernel_gaps(card("Tesla T4", 7, 5));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_EQ(refused.error().message(),
            "device cuda: Tesla T4 is an sm_75, for which kernels are missing: linear-float-sm75, "
            "attention-float-sm75, "
            "layer-norm-float-sm75 (use --device cpu, or a card of compute capability 8.0 or later)");
  EXPECT_TRUE(check_kernel_gaps(card("NVIDIA H200", 9, 0)));
}

TEST(KernelGaps, RefuseLayersByTheNumbersThatTheyNeed) {
  const Status refused = check_kernel_gaps(card("Tesla T4", 7, 5), "int8");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("scaled-mm-int8-sm75, scaled-conv-int8-sm75"));
  EXPECT_EQ(refused.error().where, "");
  EXPECT_TRUE(check_kernel_gaps(card("Tesla T4", 7, 5), "float64"));
  EXPECT_TRUE(check_kernel_gaps(card("NVIDIA A100", 8, 0), "int8"));
}

TEST(KernelGaps, AreReportedWithCountsOfEveryCard) {
  const auto declared = kernel_gap_report({});
  ASSERT_EQ(declared.size(), kKernelGaps.size());
  EXPECT_THAT(declared.front(),
              Pair("linear-float-sm75", "below compute capability 8.0: weights are read by cp.async"));
  const GpuInfo cards[] = {card("NVIDIA H200", 9, 0, 0), card("Tesla T4", 7, 5, 1)};
  const auto report = kernel_gap_report(cards);
  ASSERT_EQ(report.size(), kKernelGaps.size() + 2);
  EXPECT_THAT(report[kKernelGaps.size()], Pair("cuda:0", "none of 6"));
  EXPECT_THAT(
      report.back(),
      Pair("cuda:1",
           "6 of 6: linear-float-sm75, attention-float-sm75, layer-norm-float-sm75, quantize-int8-sm75, "
           "scaled-mm-int8-sm75, scaled-conv-int8-sm75"));
}

}  // namespace
}  // namespace oasr
