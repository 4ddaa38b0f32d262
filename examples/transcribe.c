/* Transcribes a recording with the C API: transcribe AUDIO [MODEL] */
#include <stdio.h>

#include "oasr/c_api.h"

int main(int argc, char** argv) {
  oasr_options* options = oasr_options_new();
  oasr_recognizer* recognizer = NULL;
  oasr_transcript* transcript = NULL;
  oasr_status status = OASR_INVALID_ARGUMENT;
  size_t i;

  if (argc < 2) {
    fprintf(stderr, "usage: transcribe AUDIO [MODEL]\n");
    oasr_options_free(options);
    return 2;
  }
  status = oasr_options_set(options, "model", argc > 2 ? argv[2] : "base");
  if (status == OASR_OK) status = oasr_options_set(options, "language", "en");
  if (status == OASR_OK) status = oasr_recognizer_load(options, &recognizer);
  if (status == OASR_OK) {
    status = oasr_transcribe_file(recognizer, argv[1], options, NULL, NULL, &transcript);
  }
  if (status != OASR_OK) {
    fprintf(stderr, "%s: %s\n", oasr_status_name(status), oasr_last_error());
  }
  for (i = 0; i < oasr_transcript_segment_count(transcript); ++i) {
    printf("[%.2f - %.2f]%s\n", oasr_segment_start(transcript, i), oasr_segment_end(transcript, i),
           oasr_segment_text(transcript, i));
  }
  oasr_transcript_free(transcript);
  oasr_recognizer_free(recognizer);
  oasr_options_free(options);
  return status == OASR_OK ? 0 : 1;
}
