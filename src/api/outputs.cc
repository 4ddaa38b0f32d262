#include "api/outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "api/model_cache.h"
#include "base/enum_table.h"
#include "base/fs.h"
#include "text/tokenizer.h"

namespace oasr {
namespace {

constexpr std::array<EnumName<OutputFormat>, 6> kFormats = {{
    {OutputFormat::txt, "txt"},
    {OutputFormat::json, "json"},
    {OutputFormat::srt, "srt"},
    {OutputFormat::vtt, "vtt"},
    {OutputFormat::tsv, "tsv"},
    {OutputFormat::lrc, "lrc"},
}};

// A damaged time must not become a huge or negative number in a file.
long long rounded(double seconds, double units_per_second) {
  if (!std::isfinite(seconds) || seconds < 0) return 0;
  return std::llround(std::min(seconds, 1e9) * units_per_second);
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

// `text` without white space at its ends, control characters inside as spaces, valid UTF-8.
std::string one_line(std::string_view text) {
  auto line = to_valid_utf8(text);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  const auto first = line.find_first_not_of(' ');
  if (first == std::string::npos) return {};
  return line.substr(first, line.find_last_not_of(' ') - first + 1);
}

std::string srt_cue(const Segment& segment, std::string line, int number) {
  replace_all(line, "-->", "->");
  return fmt::format("{}\n{} --> {}\n{}\n\n", number, format_timestamp(segment.start, true, ','),
                     format_timestamp(segment.end, true, ','), line);
}

std::string vtt_cue(const Segment& segment, std::string line) {
  replace_all(line, "&", "&amp;");
  replace_all(line, "<", "&lt;");
  replace_all(line, ">", "&gt;");
  return fmt::format("{} --> {}\n{}\n\n", format_timestamp(segment.start, false),
                     format_timestamp(segment.end, false), line);
}

std::string lrc_line(const Segment& segment, const std::string& line) {
  const auto cs = rounded(segment.start, 100);
  return fmt::format("[{:02}:{:02}.{:02}]{}\n", cs / 6000, cs / 100 % 60, cs % 100, line);
}

}  // namespace

const std::vector<OutputFormat>& output_formats() {
  static const std::vector<OutputFormat> all = [] {
    std::vector<OutputFormat> formats;
    for (const auto& row : kFormats) formats.push_back(row.value);
    return formats;
  }();
  return all;
}

std::string_view output_format_name(OutputFormat format) {
  return enum_name(std::span<const EnumName<OutputFormat>>(kFormats), format);
}

std::optional<OutputFormat> parse_output_format(std::string_view name) {
  return parse_enum(std::span<const EnumName<OutputFormat>>(kFormats), name);
}

std::string format_timestamp(double seconds, bool hours, char decimal_mark) {
  const auto ms = rounded(seconds, 1000);
  const auto h = ms / 3'600'000, m = ms / 60'000 % 60, s = ms / 1000 % 60;
  const auto start = hours || h > 0 ? fmt::format("{:02}:", h) : std::string();
  return start + fmt::format("{:02}:{:02}{}{:03}", m, s, decimal_mark, ms % 1000);
}

std::string format_head(OutputFormat format) {
  switch (format) {
    case OutputFormat::vtt: return "WEBVTT\n\n";
    case OutputFormat::tsv: return "start\tend\ttext\n";
    case OutputFormat::lrc: return "[re:oasr]\n";
    case OutputFormat::txt:
    case OutputFormat::json:
    case OutputFormat::srt: return {};
  }
  return {};
}

std::string format_segment(const Segment& segment, OutputFormat format, int number) {
  auto line = one_line(segment.text);
  if (line.empty()) return {};
  switch (format) {
    case OutputFormat::txt: return line + "\n";
    case OutputFormat::json: return {};
    case OutputFormat::srt: return srt_cue(segment, std::move(line), number);
    case OutputFormat::vtt: return vtt_cue(segment, std::move(line));
    case OutputFormat::tsv:
      return fmt::format("{}\t{}\t{}\n", rounded(segment.start, 1000), rounded(segment.end, 1000),
                         line);
    case OutputFormat::lrc: return lrc_line(segment, line);
  }
  return {};
}

std::string format_transcript(const Transcript& transcript, OutputFormat format,
                              const OutputContext& context) {
  if (format == OutputFormat::json) {
    return dump_json(outputs::to_json(transcript, context), 2) + "\n";
  }
  auto text = format_head(format);
  int number = 1;
  for (const auto& segment : transcript.segments) {
    const auto piece = format_segment(segment, format, number);
    if (!piece.empty()) ++number;
    text += piece;
  }
  return text;
}

Status write_output_file(const std::string& path, std::string_view text) {
  const fs::path target(path);
  if (target.has_parent_path()) TRY(make_folders(target.parent_path()));
  return write_text_file(target, text);
}

}  // namespace oasr
