#include "checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/byte_reader.h"
#include "base/json.h"
#include "checkpoint/damaged.h"

namespace oasr {
namespace {

constexpr std::size_t kMaxTensorName = 512;
constexpr std::string_view kMetadata = "__metadata__";  // the key of free text in the header
constexpr std::size_t kSizeField = 8;

Unexpected bad_safetensors(std::string what) { return damaged("safetensors", what); }

struct DTypeRow {
  std::string_view name;
  StorageFormat format;
};
constexpr std::array kDTypes = {
    DTypeRow{"F64", StorageFormat::f64},         DTypeRow{"F32", StorageFormat::f32},
    DTypeRow{"F16", StorageFormat::f16},         DTypeRow{"BF16", StorageFormat::bf16},
    DTypeRow{"I64", StorageFormat::i64},         DTypeRow{"I32", StorageFormat::i32},
    DTypeRow{"I16", StorageFormat::i16},         DTypeRow{"I8", StorageFormat::i8},
    DTypeRow{"U64", StorageFormat::u64},         DTypeRow{"U32", StorageFormat::u32},
    DTypeRow{"U16", StorageFormat::u16},         DTypeRow{"U8", StorageFormat::u8},
    DTypeRow{"BOOL", StorageFormat::boolean},    DTypeRow{"F8_E4M3", StorageFormat::f8_e4m3},
    DTypeRow{"F8_E5M2", StorageFormat::f8_e5m2},
};

struct HeaderEntry {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::uint64_t> offsets;
};

// Receives the header's JSON as it is parsed and accepts nothing but
//   {"__metadata__": {text: text}, name: {"dtype": text, "shape": [n…], "data_offsets": [n, n]}}
// with each key once. Streaming, so that a hostile header can not build a large document.
class HeaderHandler : public nlohmann::json_sax<Json> {
 public:
  std::vector<HeaderEntry> entries;
  std::string problem;

  bool null() override { return fail("null where it does not belong"); }
  bool boolean(bool) override { return fail("a truth value where it does not belong"); }
  bool number_integer(std::int64_t) override { return fail("a negative number"); }
  bool number_float(double, const std::string&) override {
    return fail("a number that is no whole number below 2^64");
  }
  bool binary(Json::binary_t&) override { return fail("binary data"); }

  bool number_unsigned(std::uint64_t value) override {
    if (state_ == State::shape) {
      if (entries.back().shape.size() == Shape::kMaxRank) {
        return fail("a tensor of more than 8 axes");
      }
      if (value > INT64_MAX) return fail("an extent over 2^63");
      entries.back().shape.push_back(static_cast<std::int64_t>(value));
    } else if (state_ == State::offsets) {
      if (entries.back().offsets.size() == 2) return fail("more than two data_offsets");
      entries.back().offsets.push_back(value);
    } else {
      return fail("a number where it does not belong");
    }
    return true;
  }

  bool string(std::string& value) override {
    if (state_ == State::metadata) return true;
    if (state_ != State::entry || field_ != "dtype") return fail("a text where it does not belong");
    entries.back().dtype = value;
    return true;
  }

  bool key(std::string& name) override {
    if (state_ == State::top) {
      if (!names_.insert(name).second) return fail("the key '" + name + "' appears twice");
      in_metadata_ = name == kMetadata;
      if (!in_metadata_) entries.push_back({.name = name, .dtype = {}, .shape = {}, .offsets = {}});
      return true;
    }
    if (!fields_.insert(name).second) {
      return fail("the key '" + name + "' appears twice in one object");
    }
    field_ = name;
    const bool known = name == "dtype" || name == "shape" || name == "data_offsets";
    if (state_ == State::entry && !known) return fail("the unknown key '" + name + "'");
    return true;
  }

  bool start_object(std::size_t) override {
    if (state_ == State::outside) return state_ = State::top, true;
    if (state_ != State::top) return fail("an object where it does not belong");
    fields_.clear();
    state_ = in_metadata_ ? State::metadata : State::entry;
    return true;
  }

  bool end_object() override {
    if (state_ == State::entry && (fields_.size() != 3 || entries.back().offsets.size() != 2)) {
      return fail("the tensor '" + entries.back().name +
                  "' lacks a dtype, shape or two data_offsets");
    }
    state_ = state_ == State::top ? State::done : State::top;
    return true;
  }

  bool start_array(std::size_t) override {
    if (state_ != State::entry || field_ == "dtype") return fail("a list where it does not belong");
    state_ = field_ == "shape" ? State::shape : State::offsets;
    return true;
  }

  bool end_array() override { return state_ = State::entry, true; }

  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    return fail("the header is not valid JSON at byte " + std::to_string(position));
  }

 private:
  enum class State { outside, top, metadata, entry, shape, offsets, done };

  bool fail(std::string why) {
    if (problem.empty()) problem = "the header has " + std::move(why);
    return false;
  }

  State state_ = State::outside;
  bool in_metadata_ = false;
  std::string field_;
  std::set<std::string> names_;   // of the top level
  std::set<std::string> fields_;  // of the object at hand
};

Result<std::vector<HeaderEntry>> parse_header(std::string_view text) {
  if (text.empty() || text.front() != '{') return bad_safetensors("the header does not begin with '{'");
  if (text.find('\0') != text.npos) return bad_safetensors("the header has a zero byte");
  HeaderHandler handler;
  if (!Json::sax_parse(text.begin(), text.end(), &handler)) return bad_safetensors(handler.problem);
  return std::move(handler.entries);
}

Result<StoredTensor> place(const HeaderEntry& entry, std::span<const std::byte> data) {
  const auto refuse = [&](const std::string& why) {
    return bad_safetensors("the tensor '" + entry.name + "' " + why);
  };
  if (!is_safetensors_name(entry.name)) {
    return bad_safetensors("a tensor name is longer than 512 bytes or has control characters");
  }
  const auto row =
      std::find_if(kDTypes.begin(), kDTypes.end(), [&](auto& r) { return r.name == entry.dtype; });
  if (row == kDTypes.end()) {
    return unexpected(ErrorCode::unsupported,
                      "safetensors: the tensor '" + entry.name + "' has dtype " + entry.dtype +
                          ", which is not read",
                      {}, "convert the weights to F16, BF16 or F32");
  }
  const auto shape = Shape::checked(entry.shape);
  const auto size = shape ? storage_bytes(row->format, *shape) : std::nullopt;
  if (!size) return refuse("has a shape that is too large");
  const auto [begin, end] = std::array{entry.offsets[0], entry.offsets[1]};
  if (begin > end || end > data.size()) return refuse("lies outside the file");
  if (end - begin != *size) {
    return refuse("has " + std::to_string(end - begin) + " bytes, its shape " + shape->to_string() +
                  " in " + entry.dtype + " needs " + std::to_string(*size));
  }
  return StoredTensor{row->format, *shape, data.subspan(begin, *size), {}};
}

// No hole and no overlap from the first byte of data to the last.
Status check_contiguous(std::vector<HeaderEntry>& entries, std::size_t data_size) {
  std::sort(entries.begin(), entries.end(), [](auto& a, auto& b) { return a.offsets < b.offsets; });
  std::uint64_t at = 0;
  for (const auto& entry : entries) {
    if (entry.offsets[0] != at) {
      return bad_safetensors("the tensor '" + entry.name + "' begins at " + std::to_string(entry.offsets[0]) +
                 ", the data before it ends at " + std::to_string(at) +
                 ": tensors overlap or leave a hole");
    }
    at = entry.offsets[1];
  }
  if (at != data_size) {
    return bad_safetensors("the tensors end at byte " + std::to_string(at) + " of the data, the file at byte " +
               std::to_string(data_size));
  }
  return {};
}

Result<std::vector<HeaderEntry>> read_entries(ByteReader& reader) {
  const auto header_size = TRY(reader.read<std::uint64_t>());
  if (header_size > kMaxSafetensorsHeader) {
    return bad_safetensors("a header of " + std::to_string(header_size) + " bytes");
  }
  return parse_header(TRY(reader.take_string(header_size)));
}

Result<StateDict> read_tensors(const FileBytes& file) {
  ByteReader reader(file.bytes, "safetensors file");
  auto entries = TRY(read_entries(reader));
  const auto data = file.bytes.subspan(reader.offset());
  StateDict dict;
  for (const auto& entry : entries) dict.tensors.emplace(entry.name, TRY(place(entry, data)));
  TRY(check_contiguous(entries, data.size()));
  dict.owners.push_back(file.owner);
  if (file.owner != nullptr) dict.mapped.push_back(file.owner);
  return dict;
}

struct Index {
  std::map<std::string, std::string> shard_of;  // by tensor
  std::set<std::string> shards;
};

Result<Index> read_index(const std::filesystem::path& path) {
  const auto where = path.string();
  const auto text = TRY(read_text_file(path));
  const auto json = TRY(parse_json(text, where));
  const auto refuse = [&](const std::string& why) {
    return unexpected(ErrorCode::bad_checkpoint, why, where);
  };
  if (has_duplicate_keys(text)) return refuse("names a tensor twice");
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) {
    return refuse("has no weight_map");
  }
  Index index;
  for (const auto& [tensor, shard] : json["weight_map"].items()) {
    if (!shard.is_string()) return refuse("the shard of '" + tensor + "' is no file name");
    const auto name = shard.get<std::string>();
    if (!is_safetensors_file_name(name)) {
      return refuse("the shard '" + name + "' is not a plain .safetensors file name");
    }
    index.shard_of.emplace(tensor, name);
    index.shards.insert(name);
  }
  if (index.shards.empty()) return refuse("names no shard");
  return index;
}

}  // namespace

bool is_safetensors_name(std::string_view name) {
  const auto printable = [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7F; };
  return name.size() <= kMaxTensorName && name != kMetadata &&
         std::all_of(name.begin(), name.end(), printable);
}

std::optional<std::string_view> safetensors_dtype(StorageFormat format) {
  const auto row = std::find_if(kDTypes.begin(), kDTypes.end(),
                                [&](const auto& r) { return r.format == format; });
  return row == kDTypes.end() ? std::nullopt : std::optional(row->name);
}

bool is_safetensors_file_name(std::string_view name) {
  return name.find_first_of(std::string_view("/\\\0", 3)) == name.npos &&
         !name.starts_with('.') && name.ends_with(".safetensors");
}

Result<StateDict> read_safetensors(const FileBytes& file) {
  return located(read_tensors(file), file.where());
}

Result<std::set<std::string, std::less<>>> safetensors_names(const FileBytes& file) {
  ByteReader reader(file.bytes, "safetensors file");
  std::set<std::string, std::less<>> names;
  for (const auto& entry : TRY(located(read_entries(reader), file.where()))) {
    if (is_safetensors_name(entry.name)) names.insert(entry.name);
  }
  return names;
}

Result<StateDict> read_safetensors_shards(const std::filesystem::path& path,
                                          std::vector<std::filesystem::path>& files) {
  const auto index = TRY(read_index(path));
  StateDict all;
  for (const auto& shard : index.shards) {
    const auto file = TRY(FileBytes::map(path.parent_path() / shard));
    auto dict = TRY(read_safetensors(file));
    for (auto& [name, tensor] : dict.tensors) {
      const auto expected = index.shard_of.find(name);
      if (expected == index.shard_of.end() || expected->second != shard) {
        return unexpected(ErrorCode::bad_checkpoint,
                          "holds '" + name + "', which the index does not place here",
                          file.where());
      }
      all.tensors.emplace(name, tensor);
    }
    all.owners.push_back(file.owner);
    all.mapped.push_back(file.owner);
    files.push_back(file.path);
  }
  for (const auto& [name, shard] : index.shard_of) {
    if (!all.tensors.contains(name)) {
      return unexpected(ErrorCode::bad_checkpoint,
                        "lacks '" + name + "', which the index places here",
                        (path.parent_path() / shard).string());
    }
  }
  return all;
}

bool looks_like_safetensors(std::span<const std::byte> bytes) {
  ByteReader reader(bytes, "safetensors file");
  const auto size = reader.read<std::uint64_t>().value_or(kMaxSafetensorsHeader + 1);
  return size >= 2 && size <= kMaxSafetensorsHeader && bytes.size() > kSizeField &&
         bytes[kSizeField] == std::byte{'{'};
}

}  // namespace oasr
