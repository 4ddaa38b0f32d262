#include "checkpoint/safetensors_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>

#include "checkpoint/safetensors.h"
#include "checkpoint/test_files.h"
#include "testing/paths.h"

namespace oasr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A tensor whose bytes count up from `first`.
TensorSource counting(std::string name, StorageFormat format, Shape shape, int first = 0) {
  const std::int64_t rows = shape.rank() < 2 ? 1 : shape[0];
  return {std::move(name), format, shape, [=](std::int64_t row, std::span<std::byte> out) {
            ASSERT_GE(row, 0);
            ASSERT_LT(row, rows);
            for (std::size_t i = 0; i < out.size(); ++i) {
              const auto at = static_cast<std::size_t>(row) * out.size() + i;
              out[i] = static_cast<std::byte>(at + static_cast<std::size_t>(first));
            }
          }};
}

class SafetensorsWriter : public ::testing::Test {
 protected:
  Result<Checksums> write(const std::vector<TensorSource>& tensors,
                          const WriteProgress& progress = {}) {
    return write_safetensors(path_, tensors, progress);
  }
  std::string text() { return read_text_file(path_).value(); }
  testing::TemporaryFolder folder_;
  fs::path path_ = folder_.path() / "x.safetensors";
};

TEST_F(SafetensorsWriter, WritesEveryDtypeOfTheReaderAlignedAndInOrder) {
  std::vector<TensorSource> tensors;
  for (const auto& [format, name] : storage_format_names()) {
    if (!safetensors_dtype(format)) continue;
    tensors.push_back(counting(std::string(name), format, {3, 5}));
    tensors.push_back(counting("one " + std::string(name), format, {}, 7));
  }
  ASSERT_EQ(tensors.size(), 30u);
  ASSERT_TRUE(write(tensors));
  const auto file = FileBytes::map(path_).value();
  const auto dict = read_safetensors(file).value();
  ASSERT_EQ(dict.tensors.size(), tensors.size());
  const auto* data = file.bytes.data() + file.bytes.size();  // where the first tensor begins
  for (const auto& [name, tensor] : dict.tensors) data = std::min(data, tensor.bytes.data());
  EXPECT_EQ((data - file.bytes.data()) % 64, 0);
  std::vector<std::tuple<std::int64_t, std::size_t, std::string>> order;
  for (const auto& source : tensors) {
    const auto tensor = dict.find(source.name).value();
    EXPECT_EQ(tensor.format, source.format);
    EXPECT_EQ(tensor.shape, source.shape);
    const auto size = *storage_bytes(source.format, {1});
    EXPECT_EQ(static_cast<std::size_t>(tensor.bytes.data() - data) % size, 0u) << source.name;
    for (std::size_t i = 0; i < tensor.bytes.size(); ++i) {
      EXPECT_EQ(std::to_integer<std::size_t>(tensor.bytes[i]),
                i + (source.shape.rank() == 0 ? 7 : 0));
    }
    order.emplace_back(tensor.bytes.data() - data, 8 - size, source.name);
  }
  std::sort(order.begin(), order.end());
  const auto key = [](const auto& row) { return std::pair(std::get<1>(row), std::get<2>(row)); };
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end(),
                             [&](const auto& a, const auto& b) { return key(a) < key(b); }));
}

TEST_F(SafetensorsWriter, GivesTheSameBytesWhateverTheOrderOfTheTensors) {
  const auto a = counting("a", StorageFormat::f32, {2, 3}),
             b = counting("b", StorageFormat::i8, {4});
  ASSERT_TRUE(write({a, b}));
  const auto first = text();
  ASSERT_TRUE(write({b, a}));
  EXPECT_EQ(text(), first);
  // Written out once by hand: what other readers of the format rely on.
  const std::string header = R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                             R"("b":{"dtype":"I8","shape":[4],"data_offsets":[24,28]}})";
  std::string data;
  for (char c = 0; c < 24; ++c) data += c;
  EXPECT_EQ(first, testing::safetensors_file(header + std::string(120 - header.size(), ' '),
                                             data + std::string("\0\1\2\3", 4)));
}

TEST_F(SafetensorsWriter, GivesTheChecksumOfDtypeShapeAndBytes) {
  const auto sums =
      write({counting("a", StorageFormat::f32, {2, 1}), counting("s", StorageFormat::u8, {}, 9),
             counting("empty", StorageFormat::f16, {0, 4})})
          .value();
  EXPECT_EQ(sums.at("a"), testing::crc_of(std::string("F32[2,1]\0\1\2\3\4\5\6\7", 16)));
  EXPECT_EQ(sums.at("s"), testing::crc_of("U8[]\x09"));
  EXPECT_EQ(sums.at("empty"), testing::crc_of("F16[0,4]"));
  EXPECT_EQ(sums.size(), 3u);
}

TEST_F(SafetensorsWriter, AsksForOneRowAtATimeInOrder) {
  std::vector<std::pair<std::int64_t, std::size_t>> calls;
  const auto watched = [&](Shape shape) {
    calls.clear();
    EXPECT_TRUE(
        write({{"a", StorageFormat::f32, shape, [&](std::int64_t row, std::span<std::byte> out) {
                  calls.emplace_back(row, out.size());
                }}}));
    return calls;
  };
  EXPECT_THAT(watched({3, 2, 2}),
              ElementsAre(std::pair(0, 16), std::pair(1, 16), std::pair(2, 16)));
  EXPECT_THAT(watched({5}), ElementsAre(std::pair(0, 20)));
  EXPECT_THAT(watched({}), ElementsAre(std::pair(0, 4)));
  EXPECT_THAT(watched({0}), ElementsAre());
  EXPECT_THAT(watched({3, 0}), ElementsAre());
  // A row that is larger than the buffer.
  EXPECT_THAT(watched({2, 3 << 19}), ElementsAre(std::pair(0, 6 << 20), std::pair(1, 6 << 20)));
  EXPECT_TRUE(read_safetensors(FileBytes::map(path_).value()));
}

TEST_F(SafetensorsWriter, ReportsProgressAndStopsWhenAsked) {
  const auto tensors = std::vector{counting("a", StorageFormat::u8, {9, 1 << 20})};
  std::vector<std::uint64_t> done;
  ASSERT_TRUE(write(tensors, [&](std::uint64_t bytes, std::uint64_t total) {
    EXPECT_EQ(total, 9u << 20);
    done.push_back(bytes);
    return true;
  }));
  EXPECT_THAT(done, ElementsAre(4u << 20, 8u << 20, 9u << 20));
  fs::remove(path_);
  const auto stopped = write(tensors, [](std::uint64_t, std::uint64_t) { return false; });
  EXPECT_EQ(stopped.error().code, ErrorCode::cancelled);
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(SafetensorsWriter, RefusesWhatTheReaderWouldRefuse) {
  const auto refusal = [&](std::string name, StorageFormat format = StorageFormat::f32) {
    const auto written = write({counting(std::move(name), format, {32})});
    EXPECT_TRUE(fs::is_empty(folder_.path()));
    return written ? "" : written.error().message();
  };
  EXPECT_THAT(refusal("__metadata__"), HasSubstr("no name for a tensor"));
  EXPECT_THAT(refusal("a\n"), HasSubstr("no name for a tensor"));
  EXPECT_THAT(refusal("\xFF"), HasSubstr("no name for a tensor"));
  EXPECT_THAT(refusal(std::string(513, 'n')), HasSubstr("512 bytes"));
  EXPECT_THAT(refusal("a", StorageFormat::q5_0), HasSubstr("a: safetensors files hold no tensors"));
  EXPECT_THAT(refusal("a", StorageFormat::ct2_int8), HasSubstr("ct2_int8"));
  const auto a = counting("a", StorageFormat::f32, {1}), b = counting("a", StorageFormat::i8, {1});
  EXPECT_THAT(write({a, b}).error().message(), HasSubstr("a: two tensors have this name"));
  // Names with every other character are escaped and come back.
  const std::string odd = "\"\\/ \xC3\xA4";
  ASSERT_TRUE(write({counting(odd, StorageFormat::f32, {1})}));
  EXPECT_TRUE(read_safetensors(FileBytes::map(path_).value()).value().find(odd));
}

}  // namespace
}  // namespace oasr
