// Uses every public C++ header of the installed library: a model that is not there is an Error.
#include <cstdio>

#include "oasr/recognizer.h"
#include "oasr/version.h"

int main() {
  oasr::EngineConfig config;
  config.model = "/no/such/model";
  config.download = false;
  const auto recognizer = oasr::Recognizer::load(config);
  if (recognizer.has_value() || recognizer.error().what.empty()) {
    std::fprintf(stderr, "loading a model that does not exist must be an error\n");
    return 1;
  }
  std::printf("oasr %s: %s\n", oasr::version(), recognizer.error().message().c_str());
  return 0;
}
