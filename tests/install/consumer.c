/* Uses the C API of the installed library: a model that is not there gives a status and a reason. */
#include <stdio.h>
#include <string.h>

#include "oasr/c_api.h"

int main(void) {
  oasr_options* options = oasr_options_new();
  oasr_recognizer* recognizer = NULL;
  if (options == NULL) return 1;
  if (oasr_options_set(options, "model", "/no/such/model") != OASR_OK ||
      oasr_options_set(options, "download", "false") != OASR_OK ||
      oasr_options_set(options, "no-such-option", "1") != OASR_INVALID_ARGUMENT) {
    fprintf(stderr, "options: %s\n", oasr_last_error());
    return 1;
  }
  const oasr_status status = oasr_recognizer_load(options, &recognizer);
  if (status == OASR_OK || recognizer != NULL || strlen(oasr_last_error()) == 0) {
    fprintf(stderr, "loading a model that does not exist must fail with a reason\n");
    return 1;
  }
  printf("oasr %s: %s: %s\n", oasr_version(), oasr_status_name(status), oasr_last_error());
  oasr_options_free(options);
  return 0;
}
