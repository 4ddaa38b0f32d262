#include "oasr/c_api.h"

#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "api/guard.h"
#include "api/option_setters.h"
#include "oasr/outputs.h"
#include "oasr/recognizer.h"
#include "oasr/version.h"

struct oasr_options {
  oasr::NamedOptions values;
};

struct oasr_recognizer {
  oasr::Recognizer recognizer;
  std::string report;
};

struct oasr_transcript {
  oasr::Transcript transcript;
  oasr::TranscribeOptions options;
  std::string formatted;
};

namespace {

using oasr::ErrorCode;

thread_local std::string last_error;

oasr_status status_of(ErrorCode code) {
  return static_cast<oasr_status>(static_cast<int>(code) + 1);
}
static_assert(static_cast<int>(ErrorCode::invalid_argument) + 1 == OASR_INVALID_ARGUMENT);
static_assert(static_cast<int>(ErrorCode::cancelled) + 1 == OASR_CANCELLED);
static_assert(static_cast<int>(ErrorCode::internal) + 1 == OASR_INTERNAL);

// Runs `body`, keeps its error's text for oasr_last_error(), and lets no exception out.
template <class Body>
oasr_status call(Body&& body) noexcept {
  try {
    last_error.clear();
    const oasr::Status status = oasr::guarded([&]() -> oasr::Status { return body(); });
    if (status) return OASR_OK;
    last_error = status.error().message();
    return status_of(status.error().code);
  } catch (...) {  // no memory for the message
    return OASR_INTERNAL;
  }
}

oasr::Unexpected null_argument(const char* name) {
  return oasr::unexpected(ErrorCode::invalid_argument, "is NULL", name);
}

oasr::Status transcribe(oasr_recognizer* recognizer, const oasr::AudioInput& input,
                        const oasr_options* options, oasr_progress progress, void* user,
                        oasr_transcript** transcript) {
  const auto& values = options->values.transcribe;
  std::atomic<bool> stop = false;  // reading asks in another thread
  oasr::Callbacks callbacks;
  if (progress != nullptr) {
    callbacks.progress = [&](double done, double total) {
      if (!stop && progress(done, total, user) != 0) stop = true;
    };
    callbacks.cancelled = [&] { return stop.load(); };
  }
  auto result = TRY(recognizer->recognizer.transcribe(input, values, callbacks));
  *transcript = new oasr_transcript{std::move(result), values, {}};
  return {};
}

const oasr::Segment* segment_at(const oasr_transcript* transcript, size_t index) {
  if (transcript == nullptr || index >= transcript->transcript.segments.size()) return nullptr;
  return &transcript->transcript.segments[index];
}

const oasr::Warning* warning_at(const oasr_transcript* transcript, size_t index) {
  if (transcript == nullptr || index >= transcript->transcript.warnings.size()) return nullptr;
  return &transcript->transcript.warnings[index];
}

}  // namespace

extern "C" {

const char* oasr_status_name(oasr_status status) {
  if (status == OASR_OK) return "ok";
  if (status < OASR_OK || status > OASR_INTERNAL) return "unknown";
  return oasr::error_code_name(static_cast<ErrorCode>(static_cast<int>(status) - 1));
}

const char* oasr_version(void) { return oasr::version(); }

const char* oasr_last_error(void) { return last_error.c_str(); }

oasr_options* oasr_options_new(void) { return new (std::nothrow) oasr_options; }

void oasr_options_free(oasr_options* options) { delete options; }

oasr_status oasr_options_set(oasr_options* options, const char* name, const char* value) {
  return call([&]() -> oasr::Status {
    if (options == nullptr) return null_argument("options");
    if (name == nullptr) return null_argument("name");
    if (value == nullptr) return null_argument("value");
    return oasr::set_option(options->values, name, value);
  });
}

oasr_status oasr_recognizer_load(const oasr_options* options, oasr_recognizer** recognizer) {
  return call([&]() -> oasr::Status {
    if (recognizer == nullptr) return null_argument("recognizer");
    *recognizer = nullptr;
    if (options == nullptr) return null_argument("options");
    auto loaded = TRY(oasr::Recognizer::load(options->values.engine));
    *recognizer = new oasr_recognizer{std::move(loaded), {}};
    return {};
  });
}

void oasr_recognizer_free(oasr_recognizer* recognizer) { delete recognizer; }

const char* oasr_recognizer_report(oasr_recognizer* recognizer) {
  if (recognizer == nullptr) return nullptr;
  const auto status = call([&]() -> oasr::Status {
    recognizer->report = recognizer->recognizer.report();
    return {};
  });
  return status == OASR_OK ? recognizer->report.c_str() : nullptr;
}

oasr_status oasr_transcribe_file(oasr_recognizer* recognizer, const char* path,
                                 const oasr_options* options, oasr_progress progress, void* user,
                                 oasr_transcript** transcript) {
  return call([&]() -> oasr::Status {
    if (transcript == nullptr) return null_argument("transcript");
    *transcript = nullptr;
    if (recognizer == nullptr) return null_argument("recognizer");
    if (options == nullptr) return null_argument("options");
    if (path == nullptr || *path == '\0') return null_argument("path");
    oasr::AudioInput input;
    input.path = path;
    return transcribe(recognizer, input, options, progress, user, transcript);
  });
}

oasr_status oasr_transcribe_samples(oasr_recognizer* recognizer, const float* samples, size_t count,
                                    int sample_rate, const oasr_options* options,
                                    oasr_progress progress, void* user,
                                    oasr_transcript** transcript) {
  return call([&]() -> oasr::Status {
    if (transcript == nullptr) return null_argument("transcript");
    *transcript = nullptr;
    if (recognizer == nullptr) return null_argument("recognizer");
    if (options == nullptr) return null_argument("options");
    if (samples == nullptr && count > 0) return null_argument("samples");
    oasr::AudioInput input;
    input.samples = {samples, count};
    input.sample_rate = sample_rate;
    return transcribe(recognizer, input, options, progress, user, transcript);
  });
}

void oasr_transcript_free(oasr_transcript* transcript) { delete transcript; }

const char* oasr_transcript_text(const oasr_transcript* transcript) {
  return transcript == nullptr ? nullptr : transcript->transcript.text.c_str();
}

const char* oasr_transcript_language(const oasr_transcript* transcript) {
  return transcript == nullptr ? nullptr : transcript->transcript.language.c_str();
}

double oasr_transcript_duration(const oasr_transcript* transcript) {
  return transcript == nullptr ? 0 : transcript->transcript.duration;
}

int oasr_transcript_truncated(const oasr_transcript* transcript) {
  return transcript != nullptr && transcript->transcript.truncated ? 1 : 0;
}

size_t oasr_transcript_segment_count(const oasr_transcript* transcript) {
  return transcript == nullptr ? 0 : transcript->transcript.segments.size();
}

const char* oasr_segment_text(const oasr_transcript* transcript, size_t index) {
  const auto* segment = segment_at(transcript, index);
  return segment == nullptr ? nullptr : segment->text.c_str();
}

double oasr_segment_start(const oasr_transcript* transcript, size_t index) {
  const auto* segment = segment_at(transcript, index);
  return segment == nullptr ? 0 : segment->start;
}

double oasr_segment_end(const oasr_transcript* transcript, size_t index) {
  const auto* segment = segment_at(transcript, index);
  return segment == nullptr ? 0 : segment->end;
}

double oasr_segment_avg_logprob(const oasr_transcript* transcript, size_t index) {
  const auto* segment = segment_at(transcript, index);
  return segment == nullptr ? 0 : segment->avg_logprob;
}

double oasr_segment_no_speech_prob(const oasr_transcript* transcript, size_t index) {
  const auto* segment = segment_at(transcript, index);
  return segment == nullptr ? 0 : segment->no_speech_prob;
}

size_t oasr_transcript_warning_count(const oasr_transcript* transcript) {
  return transcript == nullptr ? 0 : transcript->transcript.warnings.size();
}

const char* oasr_warning_kind(const oasr_transcript* transcript, size_t index) {
  const auto* warning = warning_at(transcript, index);
  return warning == nullptr ? nullptr : warning->kind.c_str();
}

const char* oasr_warning_message(const oasr_transcript* transcript, size_t index) {
  const auto* warning = warning_at(transcript, index);
  return warning == nullptr ? nullptr : warning->message.c_str();
}

const char* oasr_transcript_format(oasr_transcript* transcript, const char* format) {
  if (transcript == nullptr || format == nullptr) return nullptr;
  const auto status = call([&]() -> oasr::Status {
    const auto known = oasr::parse_output_format(format);
    if (!known) return oasr::unexpected(ErrorCode::invalid_argument, "is not a format", format);
    transcript->formatted = oasr::format_transcript(transcript->transcript, *known,
                                                    {{}, {}, {}, &transcript->options});
    return {};
  });
  return status == OASR_OK ? transcript->formatted.c_str() : nullptr;
}

}  // extern "C"
