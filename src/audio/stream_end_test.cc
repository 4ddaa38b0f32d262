#include "audio/stream_end.h"

#include <gtest/gtest.h>

#include "audio/wav_bytes.h"

namespace oasr {
namespace {

using testing::as_span;
using testing::integer;

std::string ogg_page(int flags, std::size_t body) {
  std::string lacing(body / 255, '\xFF');
  lacing += static_cast<char>(body % 255);
  return std::string("OggS") + '\0' + static_cast<char>(flags) + std::string(20, '\1') +
         static_cast<char>(lacing.size()) + lacing + std::string(body, 'x');
}

TEST(OggEnd, TellsWholeCutAndUnmarkedStreams) {
  const auto stream = ogg_page(2, 30) + ogg_page(0, 1000);
  EXPECT_EQ(ogg_end(as_span(stream + ogg_page(4, 700))), OggEnd::marked);
  EXPECT_EQ(ogg_end(as_span(stream)), OggEnd::unmarked);
  const auto last = ogg_page(4, 700);
  for (std::size_t size = 4; size < last.size(); ++size) {
    EXPECT_EQ(ogg_end(as_span(stream + last.substr(0, size))), OggEnd::cut) << size;
  }
  EXPECT_EQ(ogg_end({}), OggEnd::cut);
}

TEST(DeclaredFileBytes, ReadsMatroskaSegments) {
  const std::string header = std::string("\x1A\x45\xDF\xA3") + "\x84" + "abcd";
  const auto size_of = [&](const std::string& size) {
    return declared_file_bytes(as_span(header + "\x18\x53\x80\x67" + size + std::string(20, 'x')));
  };
  const auto start = header.size() + 4;
  EXPECT_EQ(size_of("\x85"), start + 1 + 5);
  EXPECT_EQ(size_of(std::string("\x40\x10", 2)), start + 2 + 16);
  EXPECT_EQ(size_of("\x01" + integer(1'000'000'000'000, 7, true)), start + 8 + 1'000'000'000'000);
  EXPECT_EQ(size_of("\xFF"), std::nullopt);                           // unknown: a live stream
  EXPECT_EQ(size_of("\x01" + std::string(7, '\xFF')), std::nullopt);  // the same in 8 bytes
  EXPECT_EQ(size_of(std::string(1, '\0')), std::nullopt);             // no size at all
  EXPECT_EQ(declared_file_bytes(as_span(header)), std::nullopt);
}

TEST(DeclaredFileBytes, ReadsRiffSizesThatSayAnything) {
  const auto size_of = [](std::uint32_t size, const char* form) {
    return declared_file_bytes(as_span("RIFF" + integer(size, 4) + form + "rest"));
  };
  EXPECT_EQ(size_of(1000, "AVI "), 1008U);
  EXPECT_EQ(size_of(0, "AVI "), std::nullopt);
  EXPECT_EQ(size_of(0xFFFFFFFF, "WAVE"), std::nullopt);
  EXPECT_EQ(size_of(1000, "WEBP"), std::nullopt);
}

TEST(Mp3FrameBytes, FollowsTheHeader) {
  const auto bytes_of = [](const std::string& header) { return mp3_frame_bytes(as_span(header)); };
  EXPECT_EQ(bytes_of(std::string("\xFF\xFB\x90\x00", 4)), 417U);  // MPEG 1, 128 kbit/s, 44.1 kHz
  EXPECT_EQ(bytes_of(std::string("\xFF\xFB\x92\x00", 4)), 418U);  // padded
  EXPECT_EQ(bytes_of(std::string("\xFF\xF3\x38\xC4", 4)), 108U);  // MPEG 2, 24 kbit/s, 16 kHz
  EXPECT_EQ(bytes_of(std::string("\xFF\xE3\x38\xC4", 4)), 216U);  // MPEG 2.5, 24 kbit/s, 8 kHz
  EXPECT_EQ(bytes_of("TAG3"), std::nullopt);
  EXPECT_EQ(bytes_of(std::string("\xFF\xFB\xF0\x00", 4)), std::nullopt);  // no such bit rate
  EXPECT_EQ(bytes_of("\xFF\xFB"), std::nullopt);
}

}  // namespace
}  // namespace oasr
