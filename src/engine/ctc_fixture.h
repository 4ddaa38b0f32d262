// For tests: a small random U2++ and transcribers over it.
#pragma once

#include "engine/ctc_transcriber.h"
#include "engine/engine_fixture.h"
#include "models/conformer/model.h"
#include "models/conformer/test_support.h"

namespace oasr::engine {

struct CtcFixture : ::testing::Test {
  CtcFixture() { use(models::conformer::small_train_yaml()); }

  void use(const std::string& train_yaml) { use(models::conformer::random_checkpoint(train_yaml)); }
  void use(const Checkpoint& checkpoint) {
    model = std::dynamic_pointer_cast<const models::CtcModel>(
        models::conformer::Model::load(checkpoint, {}, context).value());
  }
  std::unique_ptr<Transcriber> transcriber(int batch = 1, bool reads_ahead = false) {
    return std::move(CtcTranscriber::create(model, context, batch, reads_ahead).value());
  }
  Result<Transcript> run(const std::vector<float>& samples, const TranscribeOptions& options = {}) {
    TestAudio audio(samples);
    return transcriber()->transcribe(audio, options);
  }

  ThreadPool pool{2};
  ExecContext context{.pool = &pool, .isa = detected_isa()};
  std::shared_ptr<const models::CtcModel> model;
};

}  // namespace oasr::engine
