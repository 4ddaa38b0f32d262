#include "calib/statistics_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/located.h"
#include "checkpoint/checksum.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_writer.h"

namespace oasr::calib {
namespace {

constexpr std::string_view kKey = "key", kAbout = "about";
constexpr std::string_view kForm = "oasr input statistics 2\n";  // of the file, before the key

using State = InputStatistics::State;
using Bytes = std::vector<std::byte>;

Unexpected bad(std::string what) {
  return unexpected(ErrorCode::bad_checkpoint, std::move(what), {}, "delete the file and calibrate again");
}

// Cells of histograms as bytes.
class CellWriter {
 public:
  template <class Cells>
  void add(const Cells& cells) {
    for (const std::uint64_t count : cells) {
      if (count == 0) {
        ++zeros_;
        continue;
      }
      end_zeros();
      add_number(count);
    }
  }
  Bytes finish() {
    end_zeros();
    return std::move(bytes_);
  }

 private:
  void end_zeros() {
    if (zeros_ == 0) return;
    add_number(0);
    add_number(std::exchange(zeros_, 0));
  }
  void add_number(std::uint64_t number) {
    for (; number >= 0x80; number >>= 7) bytes_.push_back(static_cast<std::byte>(number | 0x80));
    bytes_.push_back(static_cast<std::byte>(number));
  }

  Bytes bytes_;
  std::uint64_t zeros_ = 0;
};

class CellReader {
 public:
  explicit CellReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // Fills the next cells; false if the bytes end or a number is out of range.
  template <class Cells>
  bool read(Cells& cells) {
    for (auto& cell : cells) {
      std::uint64_t count = 0;
      if (zeros_ == 0) {
        if (!read_number(count)) return false;
        if (count == 0 && (!read_number(zeros_) || zeros_ == 0)) return false;
      }
      if (count > std::numeric_limits<typename Cells::value_type>::max()) return false;
      if (count == 0) --zeros_;
      cell = static_cast<typename Cells::value_type>(count);
    }
    return true;
  }
  bool at_end() const { return bytes_.empty() && zeros_ == 0; }

 private:
  bool read_number(std::uint64_t& number) {
    number = 0;
    for (int shift = 0; !bytes_.empty(); shift += 7) {
      const auto byte = std::to_integer<std::uint64_t>(bytes_[0]);
      bytes_ = bytes_.subspan(1);
      const std::uint64_t bits = byte & 0x7F;
      if (shift > 63 || bits << shift >> shift != bits) return false;
      number |= bits << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  std::span<const std::byte> bytes_;
  std::uint64_t zeros_ = 0;  // cells of 0 that are left of a run
};

// `bytes`, borrowed, as a tensor.
TensorSource source(std::string name, StorageFormat format, const Shape& shape,
                    std::span<const std::byte> bytes) {
  const std::size_t rows = shape.rank() < 2 ? 1 : static_cast<std::size_t>(shape[0]);
  return {.name = std::move(name),
          .format = format,
          .shape = shape,
          .row = [bytes, slice = rows == 0 ? 0 : bytes.size() / rows](std::int64_t row,
                                                                      std::span<std::byte> out) {
            std::memcpy(out.data(), bytes.data() + static_cast<std::size_t>(row) * slice, slice);
          }};
}
TensorSource list_source(std::string name, StorageFormat format, const auto& values) {
  return source(std::move(name), format, {static_cast<std::int64_t>(values.size())},
                std::as_bytes(std::span(values)));
}

// What a layer's tensors need besides its state.
struct Encoded {
  std::array<std::uint64_t, 4> settings;
  Bytes histogram;
  std::array<std::uint64_t, 1> checksum;
};

// CRC-32 of the fields of a layer, in this order.
std::uint64_t checksum_of(const std::array<std::span<const std::byte>, 7>& fields) {
  std::uint32_t checksum = 0;
  for (const auto& bytes : fields) checksum = crc32_of(bytes, checksum);
  return checksum;
}
std::uint64_t checksum_of(const State& state, const Encoded& encoded) {
  const auto bytes = [](const auto& values) { return std::as_bytes(std::span(values)); };
  return checksum_of({bytes(encoded.settings), bytes(state.minimum), bytes(state.maximum), bytes(state.sum),
                      bytes(state.sum_of_squares), bytes(encoded.histogram), bytes(state.sample)});
}

Encoded encode(const State& state) {
  const auto& [channels, channel_histograms, sample_rows, seed] = state.options;
  CellWriter cells;
  if (!channel_histograms) cells.add(state.histogram.cells());
  for (const auto& channel : state.channels) cells.add(channel.cells());
  Encoded encoded{{static_cast<std::uint64_t>(state.rows), static_cast<std::uint64_t>(sample_rows), seed,
                   channel_histograms ? std::uint64_t{1} : std::uint64_t{0}},
                  cells.finish(),
                  {}};
  encoded.checksum[0] = checksum_of(state, encoded);
  return encoded;
}

void add_sources(const std::string& path, const State& state, const Encoded& encoded,
                 std::vector<TensorSource>& out) {
  const std::int64_t k = state.options.channels, kept = static_cast<std::int64_t>(state.sample.size()) / k;
  out.push_back(list_source(path + ".settings", StorageFormat::u64, encoded.settings));
  out.push_back(list_source(path + ".checksum", StorageFormat::u64, encoded.checksum));
  out.push_back(list_source(path + ".minimum", StorageFormat::f32, state.minimum));
  out.push_back(list_source(path + ".maximum", StorageFormat::f32, state.maximum));
  out.push_back(list_source(path + ".sum", StorageFormat::f64, state.sum));
  out.push_back(list_source(path + ".sum_of_squares", StorageFormat::f64, state.sum_of_squares));
  out.push_back(list_source(path + ".histogram", StorageFormat::u8, encoded.histogram));
  out.push_back(
      source(path + ".sample", StorageFormat::f32, {kept, k}, std::as_bytes(std::span(state.sample))));
}

// The tensors of one layer, by what comes after its path; read ones are taken out.
class LayerReader {
 public:
  explicit LayerReader(std::map<std::string, StoredTensor> tensors) : tensors_(std::move(tensors)) {}

  // A list (columns 0) or a matrix of that many columns.
  template <class T>
  Result<std::vector<T>> take(const std::string& field, StorageFormat format, std::int64_t columns = 0) {
    const auto found = tensors_.extract(field);
    if (!found) return bad(fmt::format("'{}' is missing", field));
    const StoredTensor& tensor = found.mapped();
    const bool fits =
        columns == 0 ? tensor.shape.rank() == 1 : tensor.shape.rank() == 2 && tensor.shape[1] == columns;
    if (tensor.format != format || !fits) return bad(fmt::format("'{}' has another type or shape", field));
    std::vector<T> values(tensor.bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  }
  // The bytes of a field; none if it is missing.
  std::span<const std::byte> bytes(const std::string& field) const {
    const auto found = tensors_.find(field);
    return found == tensors_.end() ? std::span<const std::byte>() : found->second.bytes;
  }
  Status expect_empty() const {
    if (tensors_.empty()) return {};
    return bad(fmt::format("'{}' is not known", tensors_.begin()->first));
  }

 private:
  std::map<std::string, StoredTensor> tensors_;
};

template <class Count>
Result<BasicHistogram<Count>> read_histogram(CellReader& reader, double minimum, double maximum) {
  typename BasicHistogram<Count>::Cells cells;
  if (!reader.read(cells)) return bad("'histogram' is cut off or holds a number that is out of range");
  const auto histogram = BasicHistogram<Count>::restore(cells, minimum, maximum);
  if (!histogram) return bad("'histogram' does not fit 'minimum' and 'maximum'");
  return *histogram;
}

// The histograms of a state that has everything else.
Status read_histograms(const Bytes& bytes, State& state) {
  CellReader reader(bytes);
  if (state.options.channel_histograms) {
    for (std::size_t k = 0; state.rows > 0 && k < state.minimum.size(); ++k) {
      const auto channel = TRY(read_histogram<std::uint32_t>(reader, state.minimum[k], state.maximum[k]));
      state.channels.push_back(channel);
    }
  } else {
    const float least = *std::min_element(state.minimum.begin(), state.minimum.end());
    const float greatest = *std::max_element(state.maximum.begin(), state.maximum.end());
    state.histogram = TRY(read_histogram<std::uint64_t>(reader, least, greatest));
  }
  if (!reader.at_end()) return bad("'histogram' is too long");
  return {};
}

Result<InputStatistics> read_layer(LayerReader layer) {
  const std::uint64_t found = checksum_of(
      {layer.bytes("settings"), layer.bytes("minimum"), layer.bytes("maximum"), layer.bytes("sum"),
       layer.bytes("sum_of_squares"), layer.bytes("histogram"), layer.bytes("sample")});
  const auto checksum = TRY(layer.take<std::uint64_t>("checksum", StorageFormat::u64));
  const auto settings = TRY(layer.take<std::uint64_t>("settings", StorageFormat::u64));
  if (settings.size() != 4 || settings[0] > INT64_MAX || settings[1] > INT64_MAX || settings[3] > 1) {
    return bad("'settings' are out of range");
  }
  State state;
  state.minimum = TRY(layer.take<float>("minimum", StorageFormat::f32));
  state.maximum = TRY(layer.take<float>("maximum", StorageFormat::f32));
  state.sum = TRY(layer.take<double>("sum", StorageFormat::f64));
  state.sum_of_squares = TRY(layer.take<double>("sum_of_squares", StorageFormat::f64));
  const auto channels = static_cast<std::int64_t>(state.minimum.size());
  if (channels == 0 || state.maximum.size() != state.minimum.size()) {
    return bad("'minimum' and 'maximum' are not of the same channels");
  }
  state.options = {.channels = channels,
                   .channel_histograms = settings[3] == 1,
                   .sample_rows = static_cast<std::int64_t>(settings[1]),
                   .seed = settings[2]};
  state.rows = static_cast<std::int64_t>(settings[0]);
  state.sample = TRY(layer.take<float>("sample", StorageFormat::f32, channels));
  const auto histogram = TRY(layer.take<std::byte>("histogram", StorageFormat::u8));
  TRY(layer.expect_empty());
  TRY(read_histograms(histogram, state));
  auto statistics = TRY(InputStatistics::restore(std::move(state)));
#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION  // a fuzzer would not get past it
  if (checksum != std::vector{found})
    return bad("the numbers are not those of 'checksum': the file is damaged");
#endif
  return statistics;
}

Result<std::optional<KeptStatistics>> read(const FileBytes& file, std::string_view key) {
  auto dict = TRY(read_safetensors(file));
  const auto stored = dict.tensors.extract(std::string(kKey));
  if (!stored || stored.mapped().format != StorageFormat::u8) return bad("is no file of statistics");
  const auto bytes = stored.mapped().bytes;
  if (std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) !=
      std::string(kForm).append(key)) {
    return std::optional<KeptStatistics>();
  }
  const auto about = dict.tensors.extract(std::string(kAbout));
  if (!about || about.mapped().format != StorageFormat::u8) return bad("does not say what it is about");
  std::map<std::string, std::map<std::string, StoredTensor>> layers;
  for (const auto& [name, tensor] : dict.tensors) {
    const auto dot = name.rfind('.');
    if (dot == name.npos) return bad(fmt::format("the tensor '{}' is of no layer", name));
    layers[name.substr(0, dot)].emplace(name.substr(dot + 1), tensor);
  }
  KeptStatistics kept;
  const auto text = about.mapped().bytes;
  kept.about.assign(reinterpret_cast<const char*>(text.data()), text.size());
  for (auto& [path, tensors] : layers) {
    auto layer = read_layer(LayerReader(std::move(tensors)));
    if (!layer) {
      layer.error().what = fmt::format("the layer '{}': {}", path, layer.error().what);
      return unexpected(std::move(layer).error());
    }
    kept.layers.emplace(path, std::move(*layer));
  }
  return std::optional(std::move(kept));
}

}  // namespace

Status write_statistics(const fs::path& file, std::string_view key, const Statistics& statistics,
                        std::string_view about) {
  const std::string text = std::string(kForm).append(key);
  std::deque<Encoded> encoded;  // grows without moving what the sources borrow
  std::vector<TensorSource> sources = {list_source(std::string(kKey), StorageFormat::u8, text),
                                       list_source(std::string(kAbout), StorageFormat::u8, about)};
  for (const auto& [path, layer] : statistics) {
    add_sources(path, layer.state(), encoded.emplace_back(encode(layer.state())), sources);
  }
  TRY(write_safetensors(file, sources));
  return {};
}

Result<std::optional<KeptStatistics>> read_statistics(const fs::path& file, std::string_view key) {
  std::error_code error;
  if (!fs::exists(file, error) && !error) return std::optional<KeptStatistics>();
  const auto bytes = TRY(FileBytes::map(file));
  return read_statistics(bytes, key);
}

Result<std::optional<KeptStatistics>> read_statistics(const FileBytes& file, std::string_view key) {
  return located(read(file, key), file.where());
}

}  // namespace oasr::calib
