#include "quantize/calibrate.h"

#include <fmt/format.h>

#include <algorithm>

#include "audio/audio_source.h"
#include "engine/transcriber.h"

namespace oasr::quantize {
namespace {

TranscribeOptions decoding(const models::SpeechModel& model, const CalibrateOptions& options) {
  TranscribeOptions decode;
  if (dynamic_cast<const models::AedModel*>(&model) == nullptr) return decode;
  decode.language = options.language;
  decode.beam_size = 1;
  decode.temperatures = {0.0};
  return decode;
}

bool anything_seen(const calib::Statistics& statistics) {
  return std::ranges::any_of(statistics, [](const auto& entry) { return entry.second.rows() > 0; });
}

}  // namespace

std::vector<calib::WatchedLayer> watched_layers(const std::vector<quant::LayerFacts>& facts,
                                                const quant::QuantLayout& layout) {
  std::vector<calib::WatchedLayer> layers;
  for (const quant::LayerFacts& layer : facts) {
    if (!layer.not_quantizable.empty()) continue;
    const bool chained = std::ranges::any_of(
        layout.chains, [&](const quant::GemmChain& chain) { return chain.consumer == layer.path; });
    const bool convolution = layer.kind == quant::QuantKind::conv1d || layer.kind == quant::QuantKind::conv2d;
    layers.push_back({.path = layer.path,
                      .channels = layer.in_features,
                      .channel_histograms = chained,
                      .padding = chained || convolution});
  }
  for (const quant::AttentionScores& attention : layout.attention) {
    layers.push_back({.path = attention.key,
                      .channels = attention.key_channels(),
                      .output = true,
                      .first_channel = attention.key_row});
  }
  return layers;
}

Result<Calibrated> calibrate(const std::shared_ptr<const models::SpeechModel>& model,
                             const CalibrationSet& set, const std::vector<calib::WatchedLayer>& layers,
                             const CalibrateOptions& options, ExecContext context) {
  calib::Collector collector(*context.pool, layers, options.seed);
  context.observer = &collector;
  const auto transcriber = TRY(engine::Transcriber::create(model, context));
  const TranscribeOptions decode = decoding(*model, options);
  const int rate = engine::sample_rate_of(*model);
  Callbacks callbacks;
  callbacks.cancelled = options.cancelled;
  Calibrated calibrated;
  for (std::size_t i = 0; i < set.entries.size(); ++i) {
    const auto& entry = set.entries[i];
    if (options.progress) options.progress(static_cast<double>(i), static_cast<double>(set.entries.size()));
    const auto audio = TRY(open_audio(entry.audio, {.sample_rate = rate}));
    auto transcript = transcriber->transcribe(*audio, decode, callbacks);
    if (options.cancelled && options.cancelled()) return unexpected(ErrorCode::cancelled, "stopped");
    if (auto good = collector.status(); !good) {
      Error error = std::move(good).error();
      error.where = entry.audio;
      return unexpected(std::move(error));
    }
    if (!transcript) {
      Error error = std::move(transcript).error();
      if (error.where.empty()) error.where = entry.audio;
      return unexpected(std::move(error));
    }
    calibrated.seconds += transcript->duration;
    if (transcript->text.empty()) calibrated.notes.push_back(entry.id + ": no speech was heard in it");
  }
  if (!anything_seen(collector.statistics())) {
    return unexpected(ErrorCode::bad_audio, "the model heard nothing in the calibration audio", {},
                      "calibrate with recordings of speech from the domain that is served");
  }
  calibrated.statistics = collector.take();
  return calibrated;
}

}  // namespace oasr::quantize
