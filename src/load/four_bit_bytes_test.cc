// How many bytes the 4-bit layers of real models take beside the same layers in int8.
#include "load/testing.h"
#include "testing/paths.h"

namespace oasr::load {
namespace {

namespace fs = std::filesystem;

struct FourBitBytes : LoadFixture {
  // Of layers that have this scheme, with scales, zeros and (the same in every scheme) biases.
  std::map<std::string, std::int64_t> bytes(const fs::path& model, const std::string& scheme) {
    std::map<std::string, std::int64_t> layers;
    const LoadedModel loaded = load_all(model, {.quantization = {.scheme = scheme}});
    for (const LayerReport& layer : loaded.report.layers) {
      if (layer.scheme != scheme) continue;
      layers[layer.path] = layer.weight_bytes;
    }
    return layers;
  }

  void expect_less(const fs::path& model) {
    const auto int8 = bytes(model, "int8_w8a8");
    for (const char* scheme : {"w4a8_g128", "w4a8_chn"}) {
      const auto four = bytes(model, scheme);
      EXPECT_GT(four.size(), 40u);
      std::int64_t all = 0, all_int8 = 0;
      for (const auto& [path, size] : four) {
        all += size;
        all_int8 += int8.at(path);
      }
      const double ratio = static_cast<double>(all) / static_cast<double>(all_int8);
      EXPECT_LE(ratio, 0.55) << scheme;
      EXPECT_GE(ratio, 0.5) << scheme << ": a code is half a byte";
      std::printf("%s, %s: %zu layers, %ld of %ld bytes, %.4f\n", model.filename().c_str(), scheme, four.size(),
                  static_cast<long>(all), static_cast<long>(all_int8), ratio);
    }
  }
};

TEST_F(FourBitBytes, OfWhisperBaseAreAtMost55PercentOfInt8) {
  const auto model = oasr::testing::real_weights("base", "hf");
  if (!model) GTEST_SKIP() << "no real weights of base (set OASR_TEST_WEIGHTS)";
  expect_less(*model);
}

TEST_F(FourBitBytes, OfTheU2ppAreAtMost55PercentOfInt8) {
  const auto data = oasr::testing::full_data();
  if (!data || !fs::exists(*data / "models/u2pp_en")) GTEST_SKIP() << "models/u2pp_en is not in the full test data";
  expect_less(*data / "models/u2pp_en");
}

}  // namespace
}  // namespace oasr::load
