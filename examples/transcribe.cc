// Transcribes a recording with the C++ API: transcribe AUDIO [MODEL]
#include <cstdio>

#include "oasr/outputs.h"
#include "oasr/recognizer.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: transcribe AUDIO [MODEL]\n");
    return 2;
  }
  oasr::EngineConfig config;
  config.model = argc > 2 ? argv[2] : "base";
  auto recognizer = oasr::Recognizer::load(config);
  if (!recognizer) {
    std::fprintf(stderr, "%s\n", recognizer.error().message().c_str());
    return 1;
  }

  oasr::AudioInput audio;
  audio.path = argv[1];
  oasr::TranscribeOptions options;
  options.language = "en";
  oasr::Callbacks callbacks;
  callbacks.segment = [](const oasr::Segment& segment) {  // as soon as it is final
    std::printf("[%s]%s\n", oasr::format_timestamp(segment.start, false).c_str(),
                segment.text.c_str());
  };
  const auto transcript = recognizer->transcribe(audio, options, callbacks);
  if (!transcript) {
    std::fprintf(stderr, "%s\n", transcript.error().message().c_str());
    return 1;
  }
  for (const auto& warning : transcript->warnings) {
    std::fprintf(stderr, "%s\n", warning.message.c_str());
  }
  return 0;
}
