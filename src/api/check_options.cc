#include "api/guard.h"
#include "api/device.h"
#include "api/load_options.h"
#include "audio/audio_source.h"
#include "base/env.h"
#include "device/gpu_graphs.h"
#include "engine/validate.h"
#include "oasr/recognizer.h"
#include "quant/scheme.h"

namespace oasr {
namespace {

Status check_quantization(const quant::QuantRequest& request) {
  if (!request.scheme.empty()) TRY(quant::find_scheme(request.scheme));
  TRY(quant::resolve_kinds(request.module_types));
  return {};  // options without a scheme mean something else for a checkpoint that is quantized
}

Status check_engine(const EngineConfig& engine) {
  TRY(check_batch_size(engine.batch_size));
  const auto load = TRY(load_options(engine.dtype, engine.quantization, engine.quantization_options));
  TRY(check_quantization(load.quantization));
  TRY(check_device(engine.device));
  TRY(parse_arithmetic(engine.arithmetic, engine.device));
  TRY(thread_count(engine.threads));
  TRY(selected_isa());
  TRY(env_flag("OASR_OFFLINE"));
  TRY(gpu_graphs());
  return {};
}

Status check_audio(const AudioInput& audio) {
  if (audio.channel && *audio.channel < 0) {
    return unexpected(ErrorCode::invalid_argument, "channels are counted from 0", "channel");
  }
  if (audio.raw_encoding.empty()) return {};
  return check_raw_format({audio.raw_encoding, audio.raw_sample_rate, audio.raw_channels});
}

}  // namespace

Status check_options(const EngineConfig& engine, const TranscribeOptions& options,
                     const AudioInput& audio) {
  return guarded([&]() -> Status {
    TRY(check_engine(engine));
    TRY(engine::check_options(options));
    return check_audio(audio);
  });
}

}  // namespace oasr
