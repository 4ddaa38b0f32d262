// A transcript as text, JSON and subtitle files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "oasr/options.h"
#include "oasr/result.h"
#include "oasr/transcript.h"

namespace oasr {

enum class OutputFormat : std::uint8_t { txt, json, srt, vtt, tsv, lrc };

// Every format, in the order of the enum; its name is also the file extension.
const std::vector<OutputFormat>& output_formats();
std::string_view output_format_name(OutputFormat format);
std::optional<OutputFormat> parse_output_format(std::string_view name);

// What a JSON result says beside the transcript. Borrowed for the call.
struct OutputContext {
  std::string id;                            // of a manifest; may be empty
  std::string audio;                         // path as given
  std::string model;                         // name or path as given
  const TranscribeOptions* options = nullptr;  // as used; left out when null
};

// The whole transcript in one format, valid UTF-8. Times are seconds from the start of the audio,
// rounded to the format's unit (ms; lrc: 10 ms), half away from zero.
//   txt: a line a segment.  tsv: start and end in ms, tab, text.  srt, vtt: one cue a segment.
//   lrc: [mm:ss.xx]text.  json: docs/cli.md lists every key.
// Segments without text are left out, except in json.
std::string format_transcript(const Transcript& transcript, OutputFormat format,
                              const OutputContext& context = {});

// The same piece by piece, as segments become final: the head, then each segment; `number` counts
// the segments with text from 1. Json can not be written so: both are empty.
std::string format_head(OutputFormat format);
std::string format_segment(const Segment& segment, OutputFormat format, int number);

// The JSON object on one line (JSON Lines), as for `json`.
std::string format_json_line(const Transcript& transcript, const OutputContext& context = {});

// The JSON object of a failed input on one line: id, audio, error {code, what, where, remedy}.
std::string format_json_error(const Error& error, const OutputContext& context = {});

// "00:00:01.000" (hours only when `hours` or needed).
std::string format_timestamp(double seconds, bool hours, char decimal_mark = '.');

// Writes a file that appears complete or not at all, creating the folders above it.
Status write_output_file(const std::string& path, std::string_view text);

}  // namespace oasr
