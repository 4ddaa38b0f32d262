// Audio files and streams as mono float samples at one rate, decoded piece by piece.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace oasr {

// How to read raw PCM that has no header.
struct RawFormat {
  // s8 u8, s16le s24le s32le f32le f64le and the same with be, mulaw, alaw
  std::string encoding = "s16le";
  int sample_rate = 16000;
  int channels = 1;
};

// An invalid_argument error for an unknown encoding, and a rate or number of channels that is not served.
Status check_raw_format(const RawFormat& raw);

struct AudioOptions {
  int sample_rate = 16000;            // of the samples handed out, Hz
  std::optional<int> channel = {};    // one channel (0-based) instead of the mean of all
  std::optional<RawFormat> raw = {};  // treat the input as raw PCM
  std::function<bool()> cancelled = {};  // polled while a pipe has no bytes; true: an Error `cancelled`
};

struct AudioInfo {
  std::string container;  // "wav", "mp3", …
  std::string codec;      // "pcm_s16le", …
  int sample_rate = 0;    // of the file, Hz
  int channels = 0;
  std::optional<double> declared_seconds;  // what the header says, where it says it
};

// A forward-only stream of mono float samples in [-1, 1] (float files may exceed it); integers are
// scaled by 2^-(bits-1), so that 16-bit audio at the target rate is exactly value / 32768. At
// another rate n samples become floor(n * rate / file rate + 1/2), without delay. Memory does not
// grow with length. NaN, infinity and beyond 1e9 in the input are an error that names the position. Not
// thread-safe.
class AudioSource {
 public:
  virtual ~AudioSource() = default;

  virtual const AudioInfo& info() const = 0;

  // Fills `out` as far as audio is left and returns the number of samples; 0 at the end. Damage
  // after the first sample is skipped where the container allows it, else it ends the stream; both
  // set truncated(). A file of which no sample can be decoded is an Error.
  virtual Result<std::size_t> read(std::span<float> out) = 0;

  // After the end: the audio stopped early or was damaged; says what and where (seconds of the
  // file). The samples read are good.
  virtual const std::optional<std::string>& truncated() const = 0;

  // Conditions worth a line in the report (a wrong header that was ignored, …).
  virtual const std::vector<std::string>& warnings() const = 0;

  // Starts again at the first sample; an error for pipes.
  virtual Status rewind() = 0;
  virtual bool rewindable() const = 0;
};

// Opens a file, or standard input when `path` is "-". Folders, text files, empty files and files
// without an audio stream are errors of kind bad_audio that say what the file is. A WAV (or other
// PCM) header with no samples after it is a valid stream of length 0. The content decides which
// library reads a file, never its name. `options.channel` beyond the file's channels is
// invalid_argument.
Result<std::unique_ptr<AudioSource>> open_audio(const std::filesystem::path& path,
                                                const AudioOptions& options = {});

// Samples in memory, already mono; resampled when `sample_rate` differs from the options' rate.
Result<std::unique_ptr<AudioSource>> audio_from_samples(std::vector<float> samples, int sample_rate,
                                                        const AudioOptions& options = {});

// The whole stream (tests, short clips).
Result<std::vector<float>> read_all(AudioSource& source);

}  // namespace oasr
