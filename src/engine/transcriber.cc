#include "engine/transcriber.h"

#include "engine/aed_transcriber.h"
#include "engine/ctc_transcriber.h"

namespace oasr::engine {

Result<std::unique_ptr<Transcriber>> Transcriber::create(std::shared_ptr<const models::SpeechModel> model,
                                                         ExecContext context, int batch_size) {
  CHECK(model && context.pool, "a model and threads");
  if (batch_size < 1 || batch_size > 256) {
    return unexpected(ErrorCode::invalid_argument, "the batch size must be 1 to 256", "batch_size");
  }
  // While a GPU computes, threads can prepare what comes next.
  const bool reads_ahead = context.gpu != nullptr;
  if (auto aed = std::dynamic_pointer_cast<const models::AedModel>(model)) {
    return AedTranscriber::create(std::move(aed), context, batch_size, reads_ahead);
  }
  if (auto ctc = std::dynamic_pointer_cast<const models::CtcModel>(model)) {
    return CtcTranscriber::create(std::move(ctc), context, batch_size, reads_ahead);
  }
  return unexpected(ErrorCode::unsupported, "no engine serves the family of " + model->info().architecture);
}

int sample_rate_of(const models::SpeechModel& model) {
  const auto* ctc = dynamic_cast<const models::CtcModel*>(&model);
  return ctc == nullptr ? 16000 : ctc->front_end().sample_rate;
}

}  // namespace oasr::engine
