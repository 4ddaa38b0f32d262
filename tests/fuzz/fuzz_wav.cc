// Fuzzes WAV files as a whole, and our own readers of other containers' ends on any bytes. What is
// opened reads to its end within bounds, and gives the same samples after a rewind.
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "audio/content.h"
#include "audio/memory_audio.h"
#include "audio/stream_end.h"

namespace {

constexpr std::size_t kMostSamples = 1 << 20;  // a small compressed file may hold hours

std::vector<float> read_some(oasr::AudioSource& source) {
  std::vector<float> samples;
  std::vector<float> part(4097);
  while (samples.size() < kMostSamples) {
    const auto count = source.read(part);
    if (!count || *count == 0) break;
    samples.insert(samples.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(*count));
  }
  for (const auto sample : samples) {
    if (!std::isfinite(sample)) std::abort();
  }
  return samples;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span input(reinterpret_cast<const std::byte*>(data), size);
  const auto bytes = oasr::bytes_from_memory(input);
  (void)oasr::describe_content(*bytes);
  (void)oasr::explain_damage(*bytes);
  (void)oasr::declared_file_bytes(input);
  (void)oasr::ogg_end(input);
  (void)oasr::mp3_frame_bytes(input);
  // Other containers go to FFmpeg at once: its own fuzzing covers those.
  const std::string_view start(reinterpret_cast<const char*>(data), size < 4 ? 0 : 4);
  if (start != "RIFF" && start != "RIFX" && start != "RF64" && start != "BW64") return 0;
  auto source = oasr::open_audio_bytes(input);
  if (!source) return 0;
  const auto first = read_some(**source);
  if (!(*source)->rewind() || read_some(**source) != first) std::abort();
  return 0;
}
