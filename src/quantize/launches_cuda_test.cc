// Which kernels a quantized Conformer launches on a GPU: a producer that writes int8 spares its consumer a launch.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "audio/wav_bytes.h"
#include "load/convert.h"
#include "load/load.h"
#include "models/conformer/test_support.h"
#include "models/speech_model.h"
#include "oasr/quantize.h"
#include "testing/environment.h"
#include "testing/test_files.h"

namespace oasr {
namespace {

// Of the small model. A decoder layer's keys and values of the encoder's output are a product of the same pass.
constexpr int kBlocks = 2, kDecoderLayers = 2;

struct Launches : ::testing::Test {
  void SetUp() override {
    auto opened = Gpu::open(0);
    if (!opened) GTEST_SKIP() << "no GPU: " << opened.error().what;
    gpu = std::move(*opened);
    ThreadPool pool(1);
    const auto loaded =
        load::load_checkpoint(models::conformer::random_checkpoint(models::conformer::small_train_yaml()), {},
                              {.pool = &pool, .isa = detected_isa()}).value();
    load::save_native(loaded, files.path("model")).value();
    std::string lines;
    for (const char* name : {"a", "b"}) {
      std::vector<std::int16_t> samples;
      for (int i = 0; i < 16000; ++i) samples.push_back(static_cast<std::int16_t>(i * 7919 % 20011 - 10005));
      files.write(std::string(name) + ".wav", testing::wav({}, testing::int16_bytes(samples) + name));
      lines += R"({"id": ")" + std::string(name) + R"(", "audio": ")" + name + R"(.wav", "text": "A"})" + "\n";
    }
    files.write("calib.jsonl", lines);
  }

  std::string quantized(const char* recipe) {
    QuantizeOptions options;
    options.recipe = recipe;
    options.calib_manifest = files.path("calib.jsonl");
    quantize_model(files.path("model"), files.path(recipe), options).value();
    return files.path(recipe);
  }

  // Launches that only quantize, in one pass of the encoder over an utterance.
  int quantize_launches(const std::string& path, bool link) {
    ThreadPool pool(1);
    const ExecContext context{.pool = &pool, .isa = detected_isa(), .gpu = gpu.get()};
    load::LoadOptions options;
    options.link = link;
    const auto loaded = load::load_model(path, options, context).value();
    EXPECT_TRUE(loaded.on_gpu);
    const auto model = std::dynamic_pointer_cast<const models::CtcModel>(loaded.model);
    const auto state = model->new_state(context).value();
    const auto utterance = state->open({}, true);
    state->accept(utterance, std::vector<float>(80 * static_cast<std::size_t>(model->front_end().num_mel_bins), 0.5f));
    state->finish(utterance);
    std::vector<std::string> kernels;
    gpu->trace(&kernels);
    state->step({&utterance, 1});
    gpu->trace(nullptr);
    return static_cast<int>(std::ranges::count_if(kernels, [](const std::string& kernel) {
      return kernel == "quantize_per_token" || kernel == "quantize_static";
    }));
  }

  // The log-probabilities of an utterance, and the kernels that the report names for quantized layers.
  struct Served {
    std::vector<float> scores;
    std::set<std::string> kernels;
  };
  Result<Served> serve(const std::string& path, Isa isa = detected_isa()) {
    ThreadPool pool(1);
    const ExecContext context{.pool = &pool, .isa = isa, .gpu = gpu.get()};
    const auto loaded = TRY(load::load_model(path, {}, context));
    Served served;
    for (const auto& layer : loaded.report.layers) {
      if (!layer.scheme.empty()) served.kernels.insert(layer.kernel);
    }
    const auto model = std::dynamic_pointer_cast<const models::CtcModel>(loaded.model);
    const auto state = model->new_state(context).value();
    const auto utterance = state->open({}, true);
    std::vector<float> features(90 * static_cast<std::size_t>(model->front_end().num_mel_bins));
    for (std::size_t i = 0; i < features.size(); ++i) features[i] = static_cast<float>(i * 7919 % 97) / 48 - 1;
    state->accept(utterance, features);
    state->finish(utterance);
    state->step({&utterance, 1});
    const auto scores = state->scores(utterance).values;
    served.scores.assign(scores.begin(), scores.end());
    return served;
  }

  std::unique_ptr<Gpu> gpu;
  testing::TestFiles files;
};

// Of the eight products of a block three follow a norm and two are chained: linear_out and two pointwise
// convolutions are left.
TEST_F(Launches, AreEightFiveAndThreeToQuantizeABlock) {
  const std::string smooth = quantized("smoothquant_w8a8"), fused = quantized("smoothquant_w8a8_fused");
  EXPECT_EQ(quantize_launches(smooth, false), kBlocks * 8 + kDecoderLayers);
  EXPECT_EQ(quantize_launches(smooth, true), kBlocks * 5 + kDecoderLayers);
  EXPECT_EQ(quantize_launches(fused, true), kBlocks * 3 + kDecoderLayers);
}

TEST_F(Launches, HaveTheSameBitsWithEveryBackendThatTheReportNames) {
  const std::string folder = quantized("smoothquant_w8a8_fused");
  const Served native = serve(folder).value();
  ASSERT_EQ(native.kernels.size(), 1u);
  EXPECT_TRUE(native.kernels.begin()->ends_with("mma_sync")) << *native.kernels.begin();  // with or without wgmma
  for (const char* backend : {"mma_sync", "cublaslt"}) {
    const testing::Variable variable("OASR_SCALED_MM_BACKEND", backend);
    const auto served = serve(folder);
    if (!served) {  // no library: an error that says what to do
      EXPECT_STREQ(backend, "cublaslt");
      EXPECT_EQ(served.error().code, ErrorCode::unsupported) << served.error().message();
      EXPECT_NE(served.error().remedy, "");
      continue;
    }
    EXPECT_EQ(served->kernels, std::set{"scaled_mm " + std::string(backend)});
    EXPECT_TRUE(served->scores == native.scores) << backend;
  }
}

TEST_F(Launches, AreNoneOfTheReference) {
  const std::string folder = quantized("int8_w8a8_rtn");
  {
    const testing::Variable variable("OASR_SCALED_MM_BACKEND", "reference");
    const auto refused = serve(folder);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message(),
              "OASR_SCALED_MM_BACKEND: the reference runs on a CPU, and this is a GPU (use --device cpu, or one of: auto, "
              "native, mma_sync, cublaslt)");
  }
  const auto refused = serve(folder, Isa::reference);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(),
            "OASR_LAYERS_BACKEND: the definitions of ops run on a CPU, and this is a GPU (use --device cpu, or unset it)");
}

}  // namespace
}  // namespace oasr
