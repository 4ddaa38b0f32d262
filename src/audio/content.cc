#include "audio/content.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace oasr {
namespace {

using namespace std::string_view_literals;

struct Signature {
  std::string_view start;
  std::string_view what;
};

constexpr Signature kSignatures[] = {
    {"%PDF"sv, "a PDF document"},
    {"PK\x03\x04"sv, "a ZIP archive (or an office document)"},
    {"\x1F\x8B"sv, "a gzip archive"},
    {"7z\xBC\xAF\x27\x1C"sv, "a 7-Zip archive"},
    {"Rar!"sv, "a RAR archive"},
    {"BZh"sv, "a bzip2 archive"},
    {"\xFD\x37zXZ"sv, "an xz archive"},
    {"\x28\xB5\x2F\xFD"sv, "a Zstandard archive"},
    {"\x89PNG"sv, "a PNG image"},
    {"\xFF\xD8\xFF"sv, "a JPEG image"},
    {"GIF8"sv, "a GIF image"},
    {"\x7F"
     "ELF"sv,
     "a program"},
    {"GGUF"sv, "a model file"},
    {"lmgg"sv, "a model file"},
    {"SQLite format 3"sv, "a database"},
};

bool is_text(std::string_view bytes) {
  return std::none_of(
             bytes.begin(), bytes.end(),
             [](unsigned char c) {
               return (c < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != 0x1B) ||
                      c == 0x7F;
             }) &&
         std::count_if(bytes.begin(), bytes.end(), [](unsigned char c) { return c < 0x80; }) * 2 >
             static_cast<std::ptrdiff_t>(bytes.size());
}

}  // namespace

std::optional<std::string> describe_content(ByteSource& bytes) {
  std::array<std::byte, 512> buffer{};
  const auto count = bytes.peek(0, buffer);
  if (!count || *count == 0) return std::nullopt;
  const std::string_view start(reinterpret_cast<const char*>(buffer.data()), *count);
  for (const auto& signature : kSignatures) {
    if (start.substr(0, signature.start.size()) == signature.start)
      return std::string(signature.what);
  }
  if (start.find("<html") != start.npos || start.find("<!DOCTYPE") != start.npos) {
    return std::string("an HTML page (a failed download?)");
  }
  if (is_text(start)) return std::string("a text file");
  if (std::all_of(start.begin(), start.end(), [](char c) { return c == 0; })) {
    return std::string("a file of zeros");
  }
  return std::nullopt;
}

std::optional<std::string> explain_damage(ByteSource& bytes) {
  std::array<std::byte, 12> buffer{};
  const auto count = bytes.peek(0, buffer);
  if (!count || *count < buffer.size()) return std::nullopt;
  const std::string_view start(reinterpret_cast<const char*>(buffer.data()), buffer.size());
  if (start.substr(0, 4) == "fLaC" && (start[4] & 0x7F) != 0) {
    return std::string("a FLAC file whose first metadata block is not STREAMINFO");
  }
  if (start.substr(4, 4) == "ftyp") {
    return std::string(bytes.size() ? "an MP4 file without a usable index (moov): cut short?"
                                    : "an MP4 file that can not be read from a pipe: its index "
                                      "(moov) is at the end, or missing");
  }
  return std::nullopt;
}

}  // namespace oasr
