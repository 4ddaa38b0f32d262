#include "quantize/gate.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "api/digest.h"
#include "api/loaded_facade.h"
#include "base/result.h"
#include "eval/lines.h"
#include "oasr/recognizer.h"
#include "oasr/streaming.h"

namespace oasr::quantize {
namespace {

namespace fs = std::filesystem;

Error cancelled_error() { return {ErrorCode::cancelled, "stopped while the models were compared", {}, {}}; }

std::uintmax_t size_of(const std::string& path) {
  std::error_code failed;
  return fs::file_size(path, failed);
}

// By their content; only files of a size that both sides have are read.
Result<std::vector<std::string>> shared_recordings(const EvalInputs& inputs,
                                                   std::span<const std::string> calibration_audio) {
  std::map<std::uintmax_t, std::set<std::string>> calibrated;  // by size: digests
  for (const EvalInput& row : inputs.rows) calibrated[size_of(row.utterance.audio)];
  for (const std::string& path : calibration_audio) {
    const auto same_size = calibrated.find(size_of(path));
    if (same_size == calibrated.end()) continue;
    auto digest = TRY(file_digest(path, Digest::Kind::sha256));
    same_size->second.insert(std::move(digest));
  }
  std::vector<std::string> shared;
  for (const EvalInput& row : inputs.rows) {
    const auto& digests = calibrated[size_of(row.utterance.audio)];
    if (digests.empty()) continue;
    const auto digest = TRY(file_digest(row.utterance.audio, Digest::Kind::sha256));
    if (digests.contains(digest)) shared.push_back(row.utterance.id);
  }
  return shared;
}

Status check_held_out(const EvalInputs& inputs, std::span<const std::string> calibration_audio,
                      const std::string& manifest) {
  const auto shared = TRY(shared_recordings(inputs, calibration_audio));
  if (shared.empty()) return {};
  return unexpected(ErrorCode::invalid_argument,
                    fmt::format("{} of {} recordings were calibrated on: {}", shared.size(),
                                inputs.rows.size(), eval::some_of(shared)),
                    manifest, "judge on recordings that the calibration has not heard");
}

// Takes what became of each utterance in turn.
class Sheet {
 public:
  Sheet(const EvalInputs& inputs, std::string stage, const GateCallbacks& callbacks)
      : stage_(std::move(stage)), callbacks_(callbacks) {
    for (const EvalInput& row : inputs.rows) utterances_.push_back(row.utterance);
  }

  bool cancelled() const { return callbacks_.cancelled && callbacks_.cancelled(); }

  // A text, and the seconds that were heard.
  void take(std::size_t index, Result<std::pair<std::string, double>> heard) {
    EvalUtterance& utterance = utterances_[index];
    if (heard) {
      std::tie(utterance.hypothesis, utterance.seconds) = *heard;
    } else if (heard.error().code == ErrorCode::cancelled ||
               heard.error().code == ErrorCode::invalid_argument ||
               heard.error().code == ErrorCode::unsupported) {
      // Not of this recording: of the options, or of the caller.
      if (!error_) error_ = heard.error();
    } else {
      utterance.failure = heard.error().message();
    }
    ++done_;
    if (callbacks_.progress && !error_) {
      callbacks_.progress(stage_, done_, static_cast<std::int64_t>(utterances_.size()));
    }
  }

  Result<EvalReport> score(const GateOptions& options) && {
    if (error_) return unexpected(error_->code == ErrorCode::cancelled ? cancelled_error() : *error_);
    auto report = TRY(score_utterances(std::move(utterances_), {.normalizer = options.normalizer,
                                                                .costs = "unit",
                                                                .resamples = options.resamples,
                                                                .seed = options.seed}));
    report.subject = stage_;
    return report;
  }

 private:
  std::string stage_;
  const GateCallbacks& callbacks_;
  std::vector<EvalUtterance> utterances_;
  std::int64_t done_ = 0;
  std::optional<Error> error_;
};

AudioInput audio_of(const EvalInput& row) {
  AudioInput audio;
  audio.path = row.utterance.audio;
  return audio;
}

Result<EvalReport> decode_offline(Sheet sheet, const EngineConfig& config, const load::LoadedModel* loaded,
                                  const EvalInputs& inputs, const GateOptions& options) {
  auto recognizer = TRY(loaded ? LoadedFacade::recognizer(*loaded, config) : Recognizer::load(config));
  std::vector<AudioInput> audio;
  for (const EvalInput& row : inputs.rows) audio.push_back(audio_of(row));
  Callbacks callbacks;
  callbacks.cancelled = [&] { return sheet.cancelled(); };
  recognizer.transcribe_batch(
      audio, options.decode,
      [&](std::size_t index, Result<Transcript> heard) {
        if (heard) return sheet.take(index, std::pair(std::move(heard->text), heard->duration));
        sheet.take(index, unexpected(heard.error()));
      },
      callbacks);
  return std::move(sheet).score(options);
}

// Nothing: the model is none that can be cut into chunks.
Result<std::optional<EvalReport>> decode_streams(Sheet sheet, const EngineConfig& config,
                                                 const load::LoadedModel* loaded, const EvalInputs& inputs,
                                                 const GateOptions& options) {
  auto recognizer = loaded ? LoadedFacade::streaming(*loaded, config, options.decode)
                           : StreamingRecognizer::load(config, options.decode);
  if (!recognizer && recognizer.error().code == ErrorCode::unsupported) return std::optional<EvalReport>();
  if (!recognizer) return unexpected(recognizer.error());
  for (std::size_t index = 0; index < inputs.rows.size(); ++index) {
    std::string text;
    double seconds = 0;
    Callbacks callbacks;
    callbacks.cancelled = [&] { return sheet.cancelled(); };
    callbacks.progress = [&](double done, double) { seconds = done; };
    const auto listen = [&](const StreamEvent& event) {
      if (event.kind != StreamEvent::Kind::final) return;
      text += (text.empty() ? "" : " ") + event.text;
    };
    const Status heard = recognizer->transcribe(audio_of(inputs.rows[index]), listen, callbacks);
    if (heard) {
      sheet.take(index, std::pair(std::move(text), seconds));
    } else {
      sheet.take(index, unexpected(heard.error()));
      if (heard.error().code == ErrorCode::cancelled) break;
    }
  }
  auto report = TRY(std::move(sheet).score(options));
  return std::optional(std::move(report));
}

}  // namespace

Result<EvalInputs> read_gate_inputs(const GateOptions& options,
                                    std::span<const std::string> calibration_audio) {
  if (!std::isfinite(options.max_wer_increase) || options.max_wer_increase < 0) {
    return unexpected(ErrorCode::invalid_argument, "must be a number of points from 0", "max_wer_increase");
  }
  TRY(check_eval_options({.normalizer = options.normalizer,
                          .costs = "unit",
                          .resamples = options.resamples,
                          .seed = options.seed}));
  auto inputs = TRY(read_eval_manifests({&options.manifest, 1}, {.empty_reference = "score"}));
  TRY(check_eval_audio(inputs));
  TRY(check_held_out(inputs, calibration_audio, options.manifest));
  return inputs;
}

Result<std::vector<GateSide>> decode_side(const std::string& subject, const std::string& model,
                                          const EvalInputs& inputs, const GateOptions& options,
                                          const GateCallbacks& callbacks, const load::LoadedModel* loaded) {
  EngineConfig config = options.engine;
  config.model = model;
  const auto sheet = [&](const char* mode) { return Sheet(inputs, subject + ", " + mode, callbacks); };
  // Streams first: options that a stream does not have are refused before the long part.
  std::optional<EvalReport> streams;
  if (options.streaming) streams = TRY(decode_streams(sheet("streaming"), config, loaded, inputs, options));
  auto offline = TRY(decode_offline(sheet("offline"), config, loaded, inputs, options));
  std::vector<GateSide> sides;
  sides.push_back({"offline", std::move(offline)});
  if (streams) sides.push_back({"streaming", std::move(*streams)});
  return sides;
}

}  // namespace oasr::quantize
