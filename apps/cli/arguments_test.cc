#include "cli/arguments.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <set>

#include "cli/test_folder.h"
#include "cli/transcribe_options.h"

namespace oasr::cli {
namespace {

using Words = std::vector<std::string>;

Words translated(const Words& words) {
  auto result = translate_arguments(words);
  return result ? *result : Words{"error: " + result.error().message()};
}

// Translated, checked and parsed as `oasr transcribe` does it.
Result<TranscribeArguments> parsed(const Words& words) {
  TranscribeArguments arguments;
  CLI::App command("", "transcribe");
  add_transcribe_options(command, arguments);
  auto result = translate_arguments(words);
  if (!result) return unexpected(result.error());
  if (auto good = check_empty_arguments(command, *result); !good) return unexpected(good.error());
  if (auto known = check_known_options(command, *result); !known) return unexpected(known.error());
  std::reverse(result->begin(), result->end());
  try {
    command.parse(*result);
  } catch (const CLI::ParseError& error) {
    return unexpected(ErrorCode::invalid_argument, error.what());
  }
  if (auto done = finish_options(arguments); !done) return unexpected(done.error());
  return arguments;
}

TEST(Spellings, OfWhisperCppBecomeOurs) {
  EXPECT_EQ(translated({"-bs", "5", "-tr", "-osrt", "-nt"}),
            (Words{"--beam-size", "5", "--translate", "--output-format=srt", "--no-timestamps"}));
}

TEST(Spellings, EveryTargetIsAnOptionOfTranscribe) {
  TranscribeArguments arguments;
  CLI::App command("", "transcribe");
  add_transcribe_options(command, arguments);
  std::set<std::string_view> seen;
  for (const auto& spelling : spellings()) {
    EXPECT_TRUE(seen.insert(spelling.given).second) << spelling.given << " is there twice";
    if (spelling.kind == Spelling::Kind::refused) {
      EXPECT_FALSE(spelling.becomes.empty()) << spelling.given << " is refused without a reason";
      continue;
    }
    if (spelling.becomes.empty()) continue;
    const std::string target(spelling.becomes.substr(0, spelling.becomes.find('=')));
    EXPECT_NE(command.get_option_no_throw(target), nullptr) << target;
  }
}

TEST(Spellings, NoneHidesAnOptionOfOurs) {
  TranscribeArguments arguments;
  CLI::App command("", "transcribe");
  add_transcribe_options(command, arguments);
  for (const auto& spelling : spellings()) {
    EXPECT_EQ(command.get_option_no_throw(std::string(spelling.given)), nullptr) << spelling.given;
  }
}

TEST(Spellings, ARefusedOneGivesItsReason) {
  const auto result = translate_arguments({"a.wav", "-et", "2.4"});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().where, "-et");
  EXPECT_NE(result.error().what.find("--compression-ratio-threshold"), std::string::npos);
}

TEST(Spellings, AValueThatAsksForWhatOasrDoesIsAccepted) {
  EXPECT_EQ(translated({"--fp16", "False", "--device", "cuda", "a.wav"}), (Words{"--device", "cuda", "a.wav"}));
  EXPECT_EQ(translated({"--compute_type", "float16", "--compute_type=default"}),
            (Words{"--dtype=float16", "--dtype=auto"}));
  for (const auto& row : value_spellings()) {
    const auto reason = translated({std::string(row.given), "something"});
    EXPECT_EQ(reason.front().rfind("error: ", 0), 0u) << row.given << ": other values are refused";
  }
}

TEST(Spellings, AValueThatIsNotServedIsRefusedWithWhatIs) {
  const auto reason = [](const Words& words) { return translated(words).front(); };
  EXPECT_NE(reason({"--compute_type", "int8_float32"}).find("--quantization int8_w8a8"), std::string::npos);
  EXPECT_NE(reason({"--fp16", "True"}).find("--dtype float16"), std::string::npos);
  EXPECT_NE(reason({"--fp16"}).find("error"), std::string::npos);
}

TEST(EmptyArgument, IsAnErrorThatNamesTheOption) {
  for (const char* option : {"--shard", "-o", "--output-file", "--manifest", "-l", "-m", "--seed"}) {
    const auto result = parsed({"x.wav", option, ""});
    ASSERT_FALSE(result) << option;
    EXPECT_EQ(result.error().where, option);
  }
  EXPECT_EQ(parsed({"x.wav", "--manifest="}).error().where, "--manifest");
  EXPECT_FALSE(parsed({""}));
  EXPECT_FALSE(parsed({"x.wav", ""}));
  EXPECT_FALSE(parsed({"--", ""}));
}

TEST(EmptyArgument, SaysSomethingToSomeOptions) {
  for (const char* word : {"--initial-prompt=", "--prompt=", "--suppress-tokens=", "--suppress_tokens=",
                           "--prefix=", "--prepend-punctuations="}) {
    const auto result = parsed({word, "x.wav"});
    ASSERT_TRUE(result) << word << ": " << result.error().message();
    EXPECT_EQ(result->inputs, (Words{"x.wav"})) << word;
  }
  EXPECT_TRUE(parsed({"--initial-prompt", "", "x.wav"}));
  EXPECT_TRUE(parsed({"--suppress-tokens=", "x.wav"})->options.suppress_tokens.empty());
  EXPECT_TRUE(parsed({"--prepend-punctuations=", "x.wav"})->options.prepend_punctuations.empty());
}

TEST(UnknownOption, AFileThatBeginsWithADashIsTold) {
  const auto result = parsed({"-dash.flac"});
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().remedy.find("./-dash.flac"), std::string::npos) << result.error().message();
  EXPECT_EQ(parsed({"--", "-dash.flac"})->inputs, (Words{"-dash.flac"}));
}

TEST(Spellings, UnderscoresInNamesBecomeDashesButNotInValues) {
  EXPECT_EQ(translated({"--output_dir", "my_dir", "--output_format=srt", "my_file.wav"}),
            (Words{"--output-dir", "my_dir", "--output-format=srt", "my_file.wav"}));
}

TEST(Spellings, PythonsTrueAndFalseBecomeTheFlagOrItsNegation) {
  EXPECT_EQ(translated({"--word_timestamps", "True", "--condition_on_previous_text", "False"}),
            (Words{"--word-timestamps", "--no-condition-on-previous-text"}));
  EXPECT_EQ(translated({"--word_timestamps=False"}), (Words{"--no-word-timestamps"}));
  EXPECT_EQ(translated({"--word-timestamps", "true.wav"}), (Words{"--word-timestamps", "true.wav"}));
}

TEST(Spellings, MinusFOfAFileIsAnInput) {
  const TestFolder folder;
  const auto path = (folder.path() / "a.wav").string();
  std::ofstream(path) << "x";
  EXPECT_EQ(translated({"-f", path}), (Words{path}));
  EXPECT_EQ(translated({"--file", path}), (Words{path}));
  EXPECT_EQ(translated({"-f", "srt,txt"}), (Words{"-f", "srt,txt"}));
}

TEST(Spellings, NothingChangesAfterTwoDashes) {
  EXPECT_EQ(translated({"--", "-tr", "--a_b"}), (Words{"--", "-tr", "--a_b"}));
}

TEST(UnknownOption, IsAnErrorWithTheNearestName) {
  const auto result = parsed({"a.wav", "--langauge", "de"});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().where, "--langauge");
  EXPECT_NE(result.error().remedy.find("--language"), std::string::npos);
}

TEST(UnknownOption, WithNothingNearPointsAtTheHelp) {
  const auto result = parsed({"a.wav", "--qqqqqqqqqq"});
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().remedy.find("--help"), std::string::npos);
}

TEST(UnknownOption, ShortOnesAreErrorsToo) {
  EXPECT_FALSE(parsed({"a.wav", "-z"}));
  EXPECT_FALSE(parsed({"a.wav", "-zz", "4"}));
}

TEST(TranscribeOptions, TakeAWhisperCommand) {
  const auto a = parsed({"a.mp3", "--model", "small", "--language", "English", "--task", "translate",
                         "--output_format", "all", "--output_dir", "out", "--beam_size", "5",
                         "--best_of", "None", "--temperature_increment_on_fallback", "None",
                         "--word_timestamps", "True", "--initial_prompt", "Hello"});
  ASSERT_TRUE(a) << a.error().message();
  EXPECT_EQ(a->engine.model, "small");
  EXPECT_EQ(a->options.language, "English");
  EXPECT_EQ(a->options.task, "translate");
  EXPECT_EQ(a->options.beam_size, 5);
  EXPECT_EQ(a->options.best_of, 1);
  EXPECT_EQ(a->options.temperatures, (std::vector<double>{0}));
  EXPECT_TRUE(a->options.word_timestamps);
  EXPECT_EQ(a->options.initial_prompt, "Hello");
  EXPECT_EQ(a->formats, (Words{"all"}));
  EXPECT_EQ(a->inputs, (Words{"a.mp3"}));
}

TEST(TranscribeOptions, TakeAWhisperCppCommand) {
  const auto a = parsed({"-m", "ggml-base.bin", "-t", "4", "-l", "de", "-tr", "-osrt", "-otxt", "-nf",
                         "-ot", "1500", "-d", "2000", "-lpt", "-0.5", "-nth", "0.4", "-np", "x.wav"});
  ASSERT_TRUE(a) << a.error().message();
  EXPECT_EQ(a->engine.threads, 4);
  EXPECT_EQ(a->options.task, "translate");
  EXPECT_EQ(a->formats, (Words{"srt", "txt"}));
  EXPECT_EQ(a->options.temperatures.size(), 1u);
  EXPECT_EQ(a->options.clip_timestamps, (std::vector<double>{1.5, 3.5}));
  EXPECT_EQ(a->options.logprob_threshold, -0.5);
  EXPECT_EQ(a->options.no_speech_threshold, 0.4);
  EXPECT_TRUE(a->quiet);
  EXPECT_EQ(a->inputs, (Words{"x.wav"}));
}

TEST(TranscribeOptions, DefaultsAreThoseOfTheLibrary) {
  const auto a = parsed({"x.wav"});
  ASSERT_TRUE(a);
  const TranscribeOptions library;
  EXPECT_EQ(a->options.temperatures.size(), library.temperatures.size());
  for (std::size_t i = 0; i < library.temperatures.size(); ++i) {
    EXPECT_NEAR(a->options.temperatures[i], library.temperatures[i], 1e-12);
  }
  EXPECT_EQ(a->options.language, library.language);
  EXPECT_EQ(a->options.logprob_threshold, library.logprob_threshold);
  EXPECT_TRUE(a->options.timestamps);
  EXPECT_TRUE(a->options.condition_on_previous_text);
  EXPECT_EQ(a->engine.model, "base");
}

TEST(TranscribeOptions, TemperaturesRiseToOneFromTheFirst) {
  const auto a = parsed({"x.wav", "-tp", "0.5", "-tpi", "0.25"});
  ASSERT_TRUE(a);
  EXPECT_EQ(a->options.temperatures, (std::vector<double>{0.5, 0.75, 1.0}));
}

TEST(TranscribeOptions, StepsOfTheTemperatureAreNotTooSmall) {
  EXPECT_FALSE(parsed({"x.wav", "-tpi", "1e-12"}));
  EXPECT_FALSE(parsed({"x.wav", "-tpi", "0.0099"}));
  EXPECT_FALSE(parsed({"x.wav", "--temperature", "nan"}));
  EXPECT_EQ(parsed({"x.wav", "-tpi", "0.01"})->options.temperatures.size(), 101u);
  EXPECT_EQ(parsed({"x.wav", "-tpi", "0"})->options.temperatures.size(), 1u);
}

TEST(TranscribeOptions, ASeedIsANumberOf64Bits) {
  EXPECT_EQ(parsed({"x.wav", "--seed", "18446744073709551615"})->options.seed, ~std::uint64_t{0});
  for (const char* seed : {"-1", "18446744073709551616", "1.5", "many", "0x10"}) {
    EXPECT_FALSE(parsed({"x.wav", "--seed", seed})) << seed;
  }
}

TEST(TranscribeOptions, AListOfTemperaturesIsTakenAsItIs) {
  const auto a = parsed({"--temperature", "0,0.3,0.9", "x.wav"});
  ASSERT_TRUE(a) << a.error().message();
  EXPECT_EQ(a->options.temperatures, (std::vector<double>{0, 0.3, 0.9}));
  EXPECT_EQ(a->inputs, (Words{"x.wav"}));
}

TEST(TranscribeOptions, FormatsDoNotSwallowTheInput) {
  const auto a = parsed({"-f", "txt,json", "x.wav"});
  ASSERT_TRUE(a) << a.error().message();
  EXPECT_EQ(a->formats, (Words{"txt", "json"}));
  EXPECT_EQ(a->inputs, (Words{"x.wav"}));
}

TEST(TranscribeOptions, SuppressTokensTakesAListAndNothing) {
  EXPECT_EQ(parsed({"x.wav", "--suppress_tokens", "-1"})->options.suppress_tokens,
            (std::vector<std::int32_t>{-1}));
  EXPECT_EQ(parsed({"x.wav", "--suppress-tokens=1,2,3"})->options.suppress_tokens,
            (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_TRUE(parsed({"x.wav", "--suppress_tokens", ""})->options.suppress_tokens.empty());
}

TEST(TranscribeOptions, StandardInputIsAnInput) {
  EXPECT_EQ(parsed({"-"})->inputs, (Words{"-"}));
}

TEST(TranscribeOptions, NoneSwitchesAThresholdOff) {
  const auto a = parsed({"x.wav", "--logprob_threshold", "None", "--silence-dbfs", "none"});
  ASSERT_TRUE(a);
  EXPECT_FALSE(a->options.logprob_threshold);
  EXPECT_FALSE(a->options.silence_dbfs);
}

TEST(TranscribeOptions, RefuseWhatContradicts) {
  EXPECT_FALSE(parsed({"x.wav", "--clip-timestamps", "0,5", "-ot", "100"}));
  EXPECT_FALSE(parsed({"x.wav", "--hallucination-silence-threshold", "2"}));
  EXPECT_FALSE(parsed({"x.wav", "--quiet", "--verbose"}));
  EXPECT_FALSE(parsed({"x.wav", "--beam-size", "0"}));
  EXPECT_FALSE(parsed({"x.wav", "--logprob-threshold", "low"}));
  EXPECT_FALSE(parsed({"x.wav", "--temperature", "3"}));
}

TEST(Nearest, SwapsAndBeginningsCount) {
  const Words words = {"--word-timestamps", "--language"};
  EXPECT_EQ(nearest("--langauge", words), "--language");
  EXPECT_EQ(nearest("--word", words), "--word-timestamps");
  EXPECT_FALSE(nearest("--xyz", words));
}

}  // namespace
}  // namespace oasr::cli
