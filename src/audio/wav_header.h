// The header of a RIFF/WAVE file: checked before a library reads it, so that an absurd or cut
// header is named, and so that a short data chunk is noticed.
#pragma once

#include <cstdint>
#include <optional>

#include "audio/byte_source.h"
#include "base/result.h"

namespace oasr {

struct WavHeader {
  int format_tag = 0;  // 1 PCM, 3 float, 6 A-law, 7 mu-law, …; of the sub-format when EXTENSIBLE
  int channels = 0;
  int sample_rate = 0;  // Hz
  int block_align = 0;  // bytes of a frame
  int bits = 0;
  std::uint64_t data_offset = 0;
  // What the data chunk declares; nothing where the writer could not know (0, -1 and the like).
  std::optional<std::uint64_t> data_bytes;
  bool big_endian = false;  // RIFX
  bool empty = false;       // a size of 0 that is meant: nothing or only other chunks follow
  // Where the padding byte after an odd chunk is missing; the other fields are not read then. Put
  // the byte in (with_zero_byte) and read again.
  std::optional<std::uint64_t> missing_padding;

  // True where every frame has block_align bytes.
  bool is_pcm() const {
    return format_tag == 1 || format_tag == 3 || format_tag == 6 || format_tag == 7;
  }
  // Whole frames in data_bytes; nothing if unknown or compressed.
  std::optional<std::uint64_t> frames() const;
};

// Reads RIFF, RIFX, RF64 and BW64 headers. Nothing if `bytes` holds something else, or if the data
// chunk of a pipe lies beyond the part that can be peeked at. Errors (bad_audio): no fmt or data
// chunk, numbers that make no sense.
Result<std::optional<WavHeader>> read_wav_header(ByteSource& bytes);

// Whether what the header calls PCM may be a DTS stream, as on DTS music discs: two of its sync words, of 16 or 14
// bits a word, in either order of bytes, in the first 32 KiB of the data.
Result<bool> may_hold_dts(ByteSource& bytes, const WavHeader& header);

}  // namespace oasr
