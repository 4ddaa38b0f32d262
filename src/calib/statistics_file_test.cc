#include "calib/statistics_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_writer.h"
#include "testing/test_files.h"

namespace oasr::calib {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kKey = R"({"manifest":"5f","utterances":2})";

InputStatistics some(std::int64_t rows, std::int64_t channels, bool channel_histograms) {
  std::mt19937_64 engine(static_cast<std::uint64_t>(rows));
  std::vector<float> values(static_cast<std::size_t>(rows * channels));
  for (auto& value : values) {
    const double uniform = static_cast<double>(engine() >> 11) * 0x1p-53 - 0.3;
    value = static_cast<float>(uniform * uniform * uniform * 5);
  }
  InputStatistics statistics({.channels = channels,
                              .channel_histograms = channel_histograms,
                              .sample_rows = 3,
                              .seed = ~std::uint64_t{7}});
  ThreadPool pool(1);
  EXPECT_FALSE(statistics.add(pool, {values.data(), rows, channels, channels}));
  return statistics;
}

Statistics layers() {
  return {{"encoder.layers.0.fc1", some(50, 4, true)},
          {"encoder.layers.0.fc2", some(700, 2, false)},
          {"never", some(0, 3, true)},
          {"once", some(1, 1, false)}};
}

class StatisticsFile : public ::testing::Test {
 protected:
  Result<std::optional<KeptStatistics>> read(std::string_view key = kKey) const {
    return read_statistics(fs::path(files_.path("s")), key);
  }
  void write(const Statistics& statistics, std::string_view about = "what else") const {
    ASSERT_TRUE(write_statistics(files_.path("s"), kKey, statistics, about));
  }

  testing::TestFiles files_;
};

TEST_F(StatisticsFile, GivesWhatWasWritten) {
  write(layers());
  const auto again = read();
  ASSERT_TRUE(again) << again.error().message();
  ASSERT_TRUE(*again);
  EXPECT_EQ((*again)->layers, layers());
  EXPECT_EQ((*again)->about, "what else");
  write({}, "");
  EXPECT_EQ(read().value().value().layers, Statistics());
}

TEST_F(StatisticsFile, IsTheSameBytesForTheSameStatistics) {
  write(layers());
  const auto bytes = files_.read("s");
  const auto again = read().value().value();
  write(again.layers, again.about);
  EXPECT_EQ(files_.read("s"), bytes);
}

TEST_F(StatisticsFile, OfAnotherKeyOrNotThereIsNothing) {
  EXPECT_FALSE(read().value().has_value());
  write(layers());
  EXPECT_FALSE(read("{}").value().has_value());
  EXPECT_FALSE(read("").value().has_value());
  EXPECT_FALSE(read(std::string(kKey) + " ").value().has_value());
}

TEST_F(StatisticsFile, StoresRunsOfZerosAsOneNumber) {
  // 64 channels with a constant each: a cell of 387 is filled, which takes some bytes.
  InputStatistics statistics({.channels = 64, .channel_histograms = true, .sample_rows = 0});
  const std::vector<float> values(64, 1.0f);
  ThreadPool pool(1);
  ASSERT_FALSE(statistics.add(pool, {values.data(), 1, 64, 64}));
  write({{"a", statistics}});
  // 24 bytes a channel of sums and ends, 4 of the histogram, and at most 1 KiB of names.
  EXPECT_LT(files_.read("s").size(), 64u * (24 + 4) + 1024);
  EXPECT_EQ(read().value().value().layers.at("a"), statistics);
}

TEST_F(StatisticsFile, RefusesEveryTruncation) {
  write({{"a", some(3, 1, true)}});
  const auto whole = files_.read("s");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto bytes = std::as_bytes(std::span(whole.data(), size));
    const auto result = read_statistics(FileBytes{"cut", bytes, nullptr}, kKey);
    ASSERT_FALSE(result) << size;
    EXPECT_EQ(result.error().code, ErrorCode::bad_checkpoint);
    EXPECT_EQ(result.error().where, "cut");
  }
}

TEST_F(StatisticsFile, RefusesAPathThatNoTensorCanBeNamedAfter) {
  const auto status = write_statistics(files_.path("s"), kKey, {{std::string(600, 'a'), some(1, 1, false)}});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
  EXPECT_FALSE(fs::exists(files_.path("s")));
}

// A tensor that can be changed.
struct Stored {
  StorageFormat format;
  Shape shape;
  std::string bytes;
};
using Tensors = std::map<std::string, Stored>;

template <class T>
Stored list(StorageFormat format, std::initializer_list<T> values) {
  const auto bytes = std::as_bytes(std::span(values.begin(), values.size()));
  return {format,
          {static_cast<std::int64_t>(values.size())},
          {reinterpret_cast<const char*>(bytes.data()), bytes.size()}};
}
Stored f32(std::initializer_list<float> values) { return list(StorageFormat::f32, values); }
Stored f64(std::initializer_list<double> values) { return list(StorageFormat::f64, values); }
Stored u64(std::initializer_list<std::uint64_t> values) { return list(StorageFormat::u64, values); }
Stored u8(std::initializer_list<std::uint8_t> values) { return list(StorageFormat::u8, values); }
Stored shaped(Stored stored, const Shape& shape) {
  stored.shape = shape;
  return stored;
}

class ChangedFile : public StatisticsFile {
 protected:
  // Layers "c" with channel histograms and "t" without, of the values -1 and 3; then the change.
  Error refusal(const std::function<void(Tensors&)>& change) const {
    const std::vector<float> values = {-1.0f, 3.0f};
    ThreadPool pool(1);
    Statistics statistics;
    for (const bool channels : {false, true}) {
      InputStatistics layer({.channels = 1, .channel_histograms = channels, .sample_rows = 2});
      EXPECT_FALSE(layer.add(pool, {values.data(), 2, 1, 1}));
      statistics.emplace(channels ? "c" : "t", layer);
    }
    write(statistics);
    Tensors tensors;
    const auto file = FileBytes::map(files_.path("s")).value();
    const auto dict = read_safetensors(file).value();
    for (const auto& [name, tensor] : dict.tensors) {
      tensors[name] = {tensor.format, tensor.shape,
                       std::string(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size())};
    }
    change(tensors);
    std::vector<TensorSource> sources;
    for (const auto& [name, stored] : tensors) {
      sources.push_back({.name = name,
                         .format = stored.format,
                         .shape = stored.shape,
                         .row = [&stored = stored](std::int64_t row, std::span<std::byte> out) {
                           std::memcpy(out.data(),
                                       stored.bytes.data() + static_cast<std::size_t>(row) * out.size(),
                                       out.size());
                         }});
    }
    EXPECT_TRUE(write_safetensors(files_.path("s"), sources));
    const auto result = read();
    return result ? Error{} : result.error();
  }

  struct Case {
    std::string_view problem;
    std::string name;
    std::optional<Stored> instead = {};  // nothing: the tensor is taken out
  };
  void expect_refusals(const std::vector<Case>& cases) const {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const auto error = refusal([&](Tensors& tensors) {
        tensors.erase(cases[i].name);
        if (cases[i].instead) tensors.emplace(cases[i].name, *cases[i].instead);
      });
      EXPECT_EQ(error.code, ErrorCode::bad_checkpoint) << i;
      EXPECT_EQ(error.where, files_.path("s")) << i;
      EXPECT_THAT(error.what, HasSubstr(cases[i].problem)) << i;
    }
  }
};

TEST_F(ChangedFile, IsReadWhenNothingChanged) {
  EXPECT_EQ(refusal([](Tensors&) {}).message(), Error{}.message());
  EXPECT_TRUE(read().value());
  // 15 empty cells, the -1, 367 (111 + 2 · 128) empty cells, the 3, 3 empty cells.
  const auto same = [](Tensors& t) { t["c.histogram"] = u8({0, 15, 1, 0, 0xEF, 2, 1, 0, 3}); };
  EXPECT_EQ(refusal(same).message(), Error{}.message());
}

TEST_F(ChangedFile, IsRefusedByItsChecksumWhenItsNumbersArePossible) {
  constexpr std::string_view kDamaged = "the file is damaged";
  expect_refusals({
      {kDamaged, "t.sum", f64({2.5})},
      {kDamaged, "c.sum_of_squares", f64({11})},
      {kDamaged, "t.sample", shaped(f32({-1, 2.5f}), {2, 1})},
      {kDamaged, "c.settings", u64({2, 2, 1, 1})},
      {kDamaged, "c.checksum", u64({1})},
      {kDamaged, "c.checksum", u64({})},
  });
}

TEST_F(ChangedFile, IsRefusedByWhatIsWrong) {
  const float nan = std::nanf("");
  expect_refusals({
      {"is no file of statistics", "key"},
      {"is no file of statistics", "key", f32({1.0f})},
      {"does not say what it is about", "about"},
      {"does not say what it is about", "about", f32({1.0f})},
      {"'odd' is of no layer", "odd", u8({1})},
      {"the layer 'x': 'checksum' is missing", "x.more", u8({1})},
      {"the layer 't': 'more' is not known", "t.more", u8({1})},
      {"the layer 'c': 'sum' is missing", "c.sum"},
      {"'sample' is missing", "c.sample"},
      {"'sum' has another type", "c.sum", f32({2})},
      {"'sum' has another type", "c.sum", shaped(f64({2}), {1, 1})},
      {"'sample' has another type", "c.sample", f32({-1, 3})},
      {"'sample' has another type", "c.sample", shaped(f32({-1, 3}), {1, 2})},
      {"a row of the sample is out of range", "c.sample", shaped(f32({-1, 3.5f}), {2, 1})},
      {"a row of the sample is out of range", "t.sample", shaped(f32({nan, 3}), {2, 1})},
      {"the sample has another number of rows", "t.sample", shaped(f32({3}), {1, 1})},
      {"the sample has another number of rows", "t.settings", u64({2, 1, 0, 0})},
      {"'settings' are out of range", "t.settings", u64({2, 2, 0})},
      {"'settings' are out of range", "t.settings", u64({2, 2, 0, 0, 0})},
      {"'settings' are out of range", "t.settings", u64({2, 2, 0, 2})},
      {"'settings' are out of range", "t.settings", u64({~std::uint64_t{0}, 2, 0, 0})},
      {"'settings' are out of range", "t.settings", u64({2, ~std::uint64_t{0}, 0, 0})},
      {"the histogram is not that of the values", "t.settings", u64({3, 2, 0, 0})},
      {"of the same channels", "t.minimum", f32({})},
      {"of the same channels", "t.maximum", f32({3, 3})},
      {"another length than the channels", "t.sum", f64({2, 2})},
      {"NaN or infinity", "t.sum", f64({nan})},
  });
  // Channels that neither end lists.
  const auto none = refusal([](Tensors& t) { t["t.minimum"] = t["t.maximum"] = f32({}); });
  EXPECT_THAT(none.what, HasSubstr("of the same channels"));
}

TEST_F(ChangedFile, IsRefusedByAWrongHistogram) {
  expect_refusals({
      {"does not fit 'minimum'", "t.minimum", f32({std::nanf("")})},
      {"does not fit 'minimum'", "t.minimum", f32({-2})},
      {"does not fit 'minimum'", "c.maximum", f32({30})},
      {"does not fit 'minimum'", "c.histogram", u8({1, 0, 0x82, 0x03})},
      {"'histogram' is cut off", "c.histogram", u8({})},
      {"'histogram' is cut off", "c.histogram", u8({0x81})},
      {"'histogram' is cut off", "c.histogram", u8({0, 10})},
      {"'histogram' is cut off", "c.histogram", u8({0, 0, 15, 1, 0, 0xEF, 2, 1, 0, 3})},
      // 2^32 + 1 in a channel's cell; 2^64 where 0 belongs; 0 in eleven bytes.
      {"holds a number that is out of range", "c.histogram",
       u8({0, 15, 0x81, 0x80, 0x80, 0x80, 0x10, 0, 0xEF, 2, 1, 0, 3})},
      {"holds a number that is out of range", "t.histogram",
       u8({0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2, 15, 1, 0, 0xEF, 2, 1, 0, 3})},
      {"holds a number that is out of range", "t.histogram",
       u8({0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 15, 1, 0, 0xEF, 2, 1, 0, 3})},
      {"'histogram' is too long", "c.histogram", u8({0, 15, 1, 0, 0xEF, 2, 1, 0, 4})},
      {"'histogram' is too long", "c.histogram", u8({0, 15, 1, 0, 0xEF, 2, 1, 0, 3, 1})},
  });
}

}  // namespace
}  // namespace oasr::calib
