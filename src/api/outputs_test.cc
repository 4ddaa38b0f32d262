#include "oasr/outputs.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <limits>
#include <sstream>

#include "base/json.h"
#include "testing/paths.h"

namespace oasr {
namespace {

Segment segment(double start, double end, std::string text) {
  Segment s;
  s.start = start;
  s.end = end;
  s.text = std::move(text);
  return s;
}

Transcript two_segments() {
  Transcript t;
  t.text = " Hello there. And & <you>";
  t.language = "en";
  t.duration = 3725.5;
  t.segments = {segment(0, 1.2345, " Hello there."), segment(3723.9996, 3725.5, " And & <you>")};
  return t;
}

TEST(Timestamp, RoundsToTheNearestMillisecond) {
  EXPECT_EQ(format_timestamp(0, false), "00:00.000");
  EXPECT_EQ(format_timestamp(1.2344, false), "00:01.234");
  EXPECT_EQ(format_timestamp(1.2346, false), "00:01.235");
}

TEST(Timestamp, CarriesIntoSecondsMinutesAndHours) {
  EXPECT_EQ(format_timestamp(59.9996, false), "01:00.000");
  EXPECT_EQ(format_timestamp(3599.9999, false), "01:00:00.000");
  EXPECT_EQ(format_timestamp(3599.9999, true, ','), "01:00:00,000");
  EXPECT_EQ(format_timestamp(360000, true), "100:00:00.000");
}

TEST(Timestamp, OfANumberThatIsNoTimeIsZero) {
  EXPECT_EQ(format_timestamp(-1, false), "00:00.000");
  EXPECT_EQ(format_timestamp(std::numeric_limits<double>::quiet_NaN(), false), "00:00.000");
}

TEST(Outputs, TxtIsALineASegment) {
  EXPECT_EQ(format_transcript(two_segments(), OutputFormat::txt), "Hello there.\nAnd & <you>\n");
}

TEST(Outputs, SrtNumbersCuesAndUsesAComma) {
  EXPECT_EQ(format_transcript(two_segments(), OutputFormat::srt),
            "1\n00:00:00,000 --> 00:00:01,235\nHello there.\n\n"
            "2\n01:02:04,000 --> 01:02:05,500\nAnd & <you>\n\n");
}

TEST(Outputs, VttEscapesMarkup) {
  EXPECT_EQ(format_transcript(two_segments(), OutputFormat::vtt),
            "WEBVTT\n\n00:00.000 --> 00:01.235\nHello there.\n\n"
            "01:02:04.000 --> 01:02:05.500\nAnd &amp; &lt;you&gt;\n\n");
}

TEST(Outputs, TsvGivesWholeMilliseconds) {
  EXPECT_EQ(format_transcript(two_segments(), OutputFormat::tsv),
            "start\tend\ttext\n0\t1235\tHello there.\n3724000\t3725500\tAnd & <you>\n");
}

TEST(Outputs, LrcCountsMinutesPastTheHour) {
  EXPECT_EQ(format_transcript(two_segments(), OutputFormat::lrc),
            "[re:oasr]\n[00:00.00]Hello there.\n[62:04.00]And & <you>\n");
}

TEST(Outputs, SegmentsWithoutTextAreLeftOutAndNotNumbered) {
  auto t = two_segments();
  t.segments.insert(t.segments.begin(), segment(0, 0, "  "));
  const auto srt = format_transcript(t, OutputFormat::srt);
  EXPECT_EQ(srt.rfind("1\n00:00:00,000 --> 00:00:01,235\nHello", 0), 0u);
}

TEST(Outputs, ATextThatLooksLikeAnArrowCanNotBreakSrt) {
  Transcript t;
  t.segments = {segment(0, 1, "a --> b\nc\td")};
  EXPECT_EQ(format_transcript(t, OutputFormat::srt), "1\n00:00:00,000 --> 00:00:01,000\na -> b c d\n\n");
  EXPECT_EQ(format_transcript(t, OutputFormat::tsv), "start\tend\ttext\n0\t1000\ta --> b c d\n");
}

TEST(Outputs, PiecesJoinToTheWholeInEveryFormat) {
  const auto t = two_segments();
  for (const auto format : output_formats()) {
    if (format == OutputFormat::json) continue;
    std::string text = format_head(format);
    for (std::size_t i = 0; i < t.segments.size(); ++i) {
      text += format_segment(t.segments[i], format, static_cast<int>(i) + 1);
    }
    EXPECT_EQ(text, format_transcript(t, format)) << output_format_name(format);
  }
}

TEST(Outputs, AreValidUtf8WhenATokenEndsInsideACharacter) {
  Transcript t;
  t.text = "\xE4\xBD";  // the first two bytes of a three-byte character
  t.segments = {segment(0, 1, t.text)};
  t.segments[0].words = {{t.text, 0, 1, 1}};
  for (const auto format : output_formats()) {
    const auto text = format_transcript(t, format);
    EXPECT_EQ(text.find("\xE4\xBD"), std::string::npos) << output_format_name(format);
    EXPECT_NE(text.find("\xEF\xBF\xBD"), std::string::npos) << output_format_name(format);
  }
}

TEST(JsonOutput, HasEveryDocumentedKey) {
  auto t = two_segments();
  t.language_probability = 0.5;
  t.truncated = true;
  t.warnings = {{"truncated_audio", "ends early"}};
  t.segments[0].tokens = {1, 2};
  t.segments[0].words = {{" Hello", 0, 0.5, 0.9}};
  TranscribeOptions options;
  const OutputContext context{"id-1", "a.wav", "base", &options};
  const auto json = parse_json(format_transcript(t, OutputFormat::json, context), "test");
  ASSERT_TRUE(json);
  for (const char* key : {"id", "audio", "text", "language", "language_probability", "duration",
                          "truncated", "segments", "warnings", "seed", "model", "options"}) {
    EXPECT_TRUE(json->contains(key)) << key;
  }
  const auto& first = (*json)["segments"][0];
  for (const char* key : {"id", "seek", "start", "end", "text", "tokens", "temperature",
                          "avg_logprob", "compression_ratio", "no_speech_prob", "words"}) {
    EXPECT_TRUE(first.contains(key)) << key;
  }
  EXPECT_EQ(first["end"], 1.235);
  EXPECT_EQ(first["words"][0]["word"], " Hello");
  EXPECT_EQ((*json)["warnings"][0]["kind"], "truncated_audio");
}

TEST(JsonOutput, SaysNullWhereANumberIsMissing) {
  auto t = two_segments();
  t.segments[0].avg_logprob = -std::numeric_limits<double>::infinity();
  const auto json = parse_json(format_transcript(t, OutputFormat::json), "test");
  ASSERT_TRUE(json);
  EXPECT_TRUE((*json)["segments"][0]["avg_logprob"].is_null());
  EXPECT_TRUE((*json)["language_probability"].is_null());
}

TEST(JsonOutput, LineIsOneLine) {
  const auto line = format_json_line(two_segments());
  EXPECT_EQ(line.find('\n'), line.size() - 1);
}

TEST(JsonOutput, SaysHowTheModelRan) {
  auto transcript = two_segments();
  EXPECT_FALSE(parse_json(format_json_line(transcript), "test")->contains("dtype"));
  transcript.dtype = "float16";
  EXPECT_TRUE((*parse_json(format_json_line(transcript), "test"))["quantization"].is_null());
  transcript.quantization = "int8_w8a8";
  transcript.quantization_options = {"ignore=*.fc1"};
  transcript.arithmetic = "bfloat16";
  const auto json = parse_json(format_json_line(transcript), "test");
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["dtype"], "float16");
  EXPECT_EQ((*json)["arithmetic"], "bfloat16");
  EXPECT_EQ((*json)["quantization"], "int8_w8a8");
  EXPECT_EQ((*json)["quantization_options"][0], "ignore=*.fc1");
}

TEST(JsonOutput, AnErrorIsAnObjectToo) {
  const Error error{ErrorCode::bad_audio, "no \"audio\"", "a.txt", "give audio"};
  const auto json = parse_json(format_json_error(error, {"7", "a.txt", "", nullptr}), "test");
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["id"], "7");
  EXPECT_EQ((*json)["error"]["code"], "bad_audio");
  EXPECT_EQ((*json)["error"]["what"], "no \"audio\"");
}

TEST(OutputFile, CreatesTheFoldersAboveIt) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "a" / "b" / "c.txt";
  ASSERT_TRUE(write_output_file(path.string(), "text\n"));
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), "text\n");
}

TEST(OutputFile, LeavesTheOldFileWhenTheNewOneCanNotBeWritten) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "file";
  ASSERT_TRUE(write_output_file(path.string(), "old"));
  const auto below = write_output_file((path / "x.txt").string(), "new");  // a file is no folder
  ASSERT_FALSE(below);
  EXPECT_EQ(below.error().code, ErrorCode::io);
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  EXPECT_EQ(text, "old");
}

TEST(OutputFormat, NamesAreParsedBack) {
  for (const auto format : output_formats()) {
    EXPECT_EQ(parse_output_format(output_format_name(format)), format);
  }
  EXPECT_FALSE(parse_output_format("csv"));
}

}  // namespace
}  // namespace oasr
