/* The C API: the facade of oasr/recognizer.h for C and for other languages.
 *
 * Handles are opaque; each has one *_free function, which takes NULL. Strings are UTF-8 and belong
 * to the handle that they come from: they live until it is freed or, where said, until its next
 * call. No exception passes. A handle is used by one thread at a time. */
#ifndef OASR_C_API_H
#define OASR_C_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a call can end with; the same kinds as oasr::ErrorCode. */
typedef enum oasr_status {
  OASR_OK = 0,
  OASR_INVALID_ARGUMENT = 1,
  OASR_NOT_FOUND = 2,
  OASR_IO = 3,
  OASR_BAD_AUDIO = 4,
  OASR_BAD_CHECKPOINT = 5,
  OASR_UNSUPPORTED = 6,
  OASR_NETWORK = 7,
  OASR_CANCELLED = 8,
  OASR_INTERNAL = 9
} oasr_status;

/* The name of a status ("bad_audio"); never NULL. Static. */
const char* oasr_status_name(oasr_status status);

/* "0.1.0". Static. */
const char* oasr_version(void);

typedef struct oasr_options oasr_options;
typedef struct oasr_recognizer oasr_recognizer;
typedef struct oasr_transcript oasr_transcript;

/* Why the last call of this thread failed, in one line; empty after a success. Lives until the
 * thread's next call. */
const char* oasr_last_error(void);

/* Options of loading and transcribing, all at their defaults. NULL only without memory. */
oasr_options* oasr_options_new(void);
void oasr_options_free(oasr_options* options);

/* Sets an option by its name on the command line without dashes, e.g. "beam-size", "5";
 * underscores do as well. Names: model, dtype, quantization, quantization-option
 * (may be set several times), device, arithmetic, threads, batch-size, download, language, task,
 * beam-size, best-of, patience, length-penalty, n-best, temperature (several with commas), seed,
 * compression-ratio-threshold, logprob-threshold, no-speech-threshold, condition-on-previous-text,
 * initial-prompt, carry-initial-prompt, prefix, timestamps, word-timestamps, max-new-tokens, vad,
 * vad-threshold. Flags take "true" and "false", optional numbers also "none".
 * OASR_INVALID_ARGUMENT for an unknown name or a value of the wrong kind. */
oasr_status oasr_options_set(oasr_options* options, const char* name, const char* value);

/* Loads the model that `options` names. *recognizer is NULL unless the result is OASR_OK. */
oasr_status oasr_recognizer_load(const oasr_options* options, oasr_recognizer** recognizer);
void oasr_recognizer_free(oasr_recognizer* recognizer);

/* What is loaded, as a JSON object. Lives until the recognizer's next call. */
const char* oasr_recognizer_report(oasr_recognizer* recognizer);

/* Called during a transcription. Progress: seconds done and, if known, in all (else 0). A non-zero
 * result stops the transcription with OASR_CANCELLED. */
typedef int (*oasr_progress)(double seconds_done, double seconds_total, void* user);

/* Transcribes a file ("-": standard input). *transcript is NULL unless the result is OASR_OK.
 * `progress` may be NULL. */
oasr_status oasr_transcribe_file(oasr_recognizer* recognizer, const char* path,
                                 const oasr_options* options, oasr_progress progress, void* user,
                                 oasr_transcript** transcript);

/* Transcribes mono samples in [-1, 1] at `sample_rate` Hz. */
oasr_status oasr_transcribe_samples(oasr_recognizer* recognizer, const float* samples, size_t count,
                                    int sample_rate, const oasr_options* options,
                                    oasr_progress progress, void* user,
                                    oasr_transcript** transcript);
void oasr_transcript_free(oasr_transcript* transcript);

const char* oasr_transcript_text(const oasr_transcript* transcript);
const char* oasr_transcript_language(const oasr_transcript* transcript);
double oasr_transcript_duration(const oasr_transcript* transcript);   /* seconds */
int oasr_transcript_truncated(const oasr_transcript* transcript);     /* 1: the audio was damaged */

size_t oasr_transcript_segment_count(const oasr_transcript* transcript);

/* A segment; indices out of range give NULL and 0. Times in seconds. */
const char* oasr_segment_text(const oasr_transcript* transcript, size_t index);
double oasr_segment_start(const oasr_transcript* transcript, size_t index);
double oasr_segment_end(const oasr_transcript* transcript, size_t index);
double oasr_segment_avg_logprob(const oasr_transcript* transcript, size_t index);
double oasr_segment_no_speech_prob(const oasr_transcript* transcript, size_t index);

size_t oasr_transcript_warning_count(const oasr_transcript* transcript);
const char* oasr_warning_kind(const oasr_transcript* transcript, size_t index);
const char* oasr_warning_message(const oasr_transcript* transcript, size_t index);

/* The transcript as txt, json, srt, vtt, tsv or lrc; NULL for another name. Lives until the
 * transcript's next call of this function. */
const char* oasr_transcript_format(oasr_transcript* transcript, const char* format);

#ifdef __cplusplus
}
#endif

#endif /* OASR_C_API_H */
