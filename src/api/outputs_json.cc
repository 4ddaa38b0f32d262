#include <cmath>

#include "api/outputs.h"
#include "text/tokenizer.h"

namespace oasr {
namespace outputs {
namespace {

// JSON has no infinity; a value that could not be computed is null.
OrderedJson number(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
}

// Times in whole milliseconds: 7.2, not 7.199999999999999.
OrderedJson seconds(double value) {
  return std::isfinite(value) ? OrderedJson(std::round(value * 1000) / 1000) : OrderedJson(nullptr);
}

OrderedJson optional(const std::optional<double>& value) {
  return value ? number(*value) : OrderedJson(nullptr);
}

OrderedJson word_json(const Word& word) {
  return {{"word", to_valid_utf8(word.text)},
          {"start", seconds(word.start)},
          {"end", seconds(word.end)},
          {"probability", number(word.probability)}};
}

OrderedJson segment_json(const Segment& segment, bool words) {
  OrderedJson json = {{"id", segment.id},
                      {"seek", segment.seek},
                      {"start", seconds(segment.start)},
                      {"end", seconds(segment.end)},
                      {"text", to_valid_utf8(segment.text)},
                      {"tokens", segment.tokens},
                      {"temperature", number(segment.temperature)},
                      {"avg_logprob", number(segment.avg_logprob)},
                      {"compression_ratio", number(segment.compression_ratio)},
                      {"no_speech_prob", number(segment.no_speech_prob)}};
  if (words) {
    json["words"] = OrderedJson::array();
    for (const auto& word : segment.words) json["words"].push_back(word_json(word));
  }
  return json;
}

OrderedJson vad_json(const VadOptions& vad) {
  if (!vad.enabled) return OrderedJson(false);
  return {{"threshold", vad.threshold},
          {"min_speech_ms", vad.min_speech_ms},
          {"max_speech_s", vad.max_speech_s},
          {"min_silence_ms", vad.min_silence_ms},
          {"speech_pad_ms", vad.speech_pad_ms}};
}

OrderedJson ctc_json(const CtcOptions& ctc) {
  OrderedJson json = {{"decode", to_valid_utf8(ctc.decode)},
                      {"chunk_size", ctc.chunk_size},
                      {"num_left_chunks", ctc.num_left_chunks},
                      {"ctc_weight", optional(ctc.ctc_weight)},
                      {"reverse_weight", optional(ctc.reverse_weight)}};
  json["hotwords"] = OrderedJson::array();
  for (const Hotword& word : ctc.hotwords) {
    json["hotwords"].push_back({{"text", to_valid_utf8(word.text)}, {"weight", number(word.weight)}});
  }
  return json;
}

OrderedJson options_json(const TranscribeOptions& options) {
  return {{"language", options.language},
          {"task", options.task},
          {"beam_size", options.beam_size ? OrderedJson(*options.beam_size) : OrderedJson(nullptr)},
          {"best_of", options.best_of},
          {"patience", options.patience},
          {"length_penalty", optional(options.length_penalty)},
          {"n_best", options.n_best},
          {"temperatures", options.temperatures},
          {"seed", options.seed},
          {"compression_ratio_threshold", optional(options.compression_ratio_threshold)},
          {"logprob_threshold", optional(options.logprob_threshold)},
          {"no_speech_threshold", optional(options.no_speech_threshold)},
          {"condition_on_previous_text", options.condition_on_previous_text},
          {"initial_prompt", to_valid_utf8(options.initial_prompt)},
          {"carry_initial_prompt", options.carry_initial_prompt},
          {"prefix", to_valid_utf8(options.prefix)},
          {"suppress_blank", options.suppress_blank},
          {"suppress_tokens", options.suppress_tokens},
          {"timestamps", options.timestamps},
          {"max_initial_timestamp", options.max_initial_timestamp},
          {"word_timestamps", options.word_timestamps},
          {"hallucination_silence_threshold", optional(options.hallucination_silence_threshold)},
          {"clip_timestamps", options.clip_timestamps},
          {"max_new_tokens", options.max_new_tokens},
          {"silence_dbfs", optional(options.silence_dbfs)},
          {"vad", vad_json(options.vad)},
          {"ctc", ctc_json(options.ctc)}};
}

void add_context(OrderedJson& json, const OutputContext& context) {
  if (!context.id.empty()) json["id"] = to_valid_utf8(context.id);
  if (!context.audio.empty()) json["audio"] = to_valid_utf8(context.audio);
}

}  // namespace

OrderedJson to_json(const Transcript& transcript, const OutputContext& context) {
  OrderedJson json;
  add_context(json, context);
  json["text"] = to_valid_utf8(transcript.text);
  json["language"] = transcript.language;
  json["language_probability"] = transcript.language_probability > 0
                                     ? number(transcript.language_probability)
                                     : OrderedJson(nullptr);
  json["duration"] = seconds(transcript.duration);
  json["truncated"] = transcript.truncated;
  const bool words = context.options != nullptr && context.options->word_timestamps;
  json["segments"] = OrderedJson::array();
  for (const auto& segment : transcript.segments) {
    json["segments"].push_back(segment_json(segment, words || !segment.words.empty()));
  }
  if (!transcript.alternatives.empty()) {
    for (const auto& other : transcript.alternatives) {
      json["alternatives"].push_back({{"text", to_valid_utf8(other.text)},
                                      {"tokens", other.tokens},
                                      {"avg_logprob", number(other.avg_logprob)},
                                      {"score", number(other.score)}});
    }
  }
  json["warnings"] = OrderedJson::array();
  for (const auto& warning : transcript.warnings) {
    json["warnings"].push_back(
        {{"kind", warning.kind}, {"message", to_valid_utf8(warning.message)}});
  }
  json["seed"] = transcript.seed;
  if (!context.model.empty()) json["model"] = to_valid_utf8(context.model);
  if (!transcript.dtype.empty()) {
    json["dtype"] = transcript.dtype;
    if (!transcript.arithmetic.empty()) json["arithmetic"] = transcript.arithmetic;
    json["quantization"] =
        transcript.quantization.empty() ? OrderedJson(nullptr) : OrderedJson(transcript.quantization);
    json["quantization_options"] = OrderedJson::array();
    for (const auto& option : transcript.quantization_options) {
      json["quantization_options"].push_back(to_valid_utf8(option));
    }
  }
  if (context.options != nullptr) json["options"] = options_json(*context.options);
  return json;
}

}  // namespace outputs

std::string format_json_line(const Transcript& transcript, const OutputContext& context) {
  return dump_json(outputs::to_json(transcript, context)) + "\n";
}

std::string format_json_error(const Error& error, const OutputContext& context) {
  OrderedJson json;
  outputs::add_context(json, context);
  json["error"] = {{"code", error_code_name(error.code)},
                   {"what", to_valid_utf8(error.what)},
                   {"where", to_valid_utf8(error.where)},
                   {"remedy", to_valid_utf8(error.remedy)}};
  return dump_json(json) + "\n";
}

}  // namespace oasr
