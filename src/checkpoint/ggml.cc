// whisper.cpp's model files: magic, hyper-parameters, mel filters, vocabulary, tensors.

#include <algorithm>
#include <array>
#include <set>

#include "base/byte_reader.h"
#include "base/json.h"
#include "checkpoint/containers.h"
#include "checkpoint/damaged.h"

namespace oasr {
namespace {

constexpr std::uint32_t kMagic = 0x67676d6c;   // "ggml" as a number
constexpr std::int32_t kVersionFactor = 1000;  // ftype = version of the block layouts · 1000 + type
constexpr std::int32_t kBlockVersion = 2;      // the layouts that this file reads
constexpr std::int32_t kMaxDim = 1 << 20;      // of a hyper-parameter
constexpr std::int32_t kMaxTokenBytes = 1024;
constexpr std::int32_t kMaxGgmlName = 512;
constexpr std::int32_t kMaxRank = 4;
constexpr std::int32_t kFourierBins = 201;  // of 400 samples

Unexpected bad_ggml(std::string what) { return damaged("ggml file", what); }

Unexpected refuse_ggml(std::string what) {
  return unexpected(
      ErrorCode::unsupported, "ggml file: " + std::move(what), {},
      "quantize the model again with a current whisper.cpp, to one of f32, f16, q8_0, q5_0, "
      "q5_1, q4_0, q4_1");
}

// Hyper-parameters in the order of the file.
constexpr std::array<std::string_view, 10> kOrder = {
    "n_vocab",    "n_audio_ctx",  "n_audio_state", "n_audio_head", "n_audio_layer",
    "n_text_ctx", "n_text_state", "n_text_head",   "n_text_layer", "n_mels"};

struct Header {
  Dims dims{};
  std::int32_t ftype = 0;  // as stored
};

// A number of the file that must lie in [low, high].
Result<std::int32_t> read_count(ByteReader& reader, std::string_view what, std::int32_t low,
                                std::int32_t high) {
  const auto value = TRY(reader.read<std::int32_t>());
  if (value >= low && value <= high) return value;
  return bad_ggml(std::string(what) + " is " + std::to_string(value) + ", outside of " +
             std::to_string(low) + " to " + std::to_string(high));
}

Result<Header> read_ggml_header(ByteReader& reader) {
  const auto magic = TRY(reader.read<std::uint32_t>());
  if (magic != kMagic) return bad_ggml("the first bytes are not those of a whisper.cpp model");
  Header header;
  for (const auto name : kOrder) {
    const auto value = TRY(read_count(reader, name, 1, kMaxDim));
    const auto at = std::find(kDimNames.begin(), kDimNames.end(), name) - kDimNames.begin();
    header.dims[static_cast<std::size_t>(at)] = value;
  }
  header.ftype = TRY(read_count(reader, "ftype", 0, 1'000'000));
  return header;
}

// The filters are recomputed by the features module; here they only have to be sound.
Status skip_filters(ByteReader& reader, std::int64_t n_mels) {
  const auto mels = TRY(read_count(reader, "the number of mel filters", 1, 512));
  if (mels != n_mels) {
    return bad_ggml("has " + std::to_string(mels) + " mel filters, but n_mels is " +
               std::to_string(n_mels));
  }
  const auto bins =
      TRY(read_count(reader, "the width of the mel filters", kFourierBins, kFourierBins));
  (void)TRY(reader.take(static_cast<std::uint64_t>(mels) * static_cast<std::uint64_t>(bins) *
                        sizeof(float)));
  return {};
}

Result<std::vector<std::string>> read_vocabulary(ByteReader& reader, std::int64_t n_vocab) {
  const auto count =
      TRY(read_count(reader, "the number of tokens", 0, static_cast<std::int32_t>(n_vocab)));
  std::vector<std::string> tokens;
  for (std::int32_t i = 0; i < count; ++i) {
    const auto size = TRY(read_count(reader, "the length of a token", 0, kMaxTokenBytes));
    tokens.push_back(TRY(reader.take_string(static_cast<std::uint64_t>(size))));
  }
  // Files of English-only models list this special token after the ranks.
  if (!tokens.empty() && tokens.back() == "<|endoftext|>") tokens.pop_back();
  return tokens;
}

struct TypeRow {
  std::int32_t id;  // of ggml_type
  StorageFormat format;
  bool blocks;
};
constexpr std::array kTypes = {
    TypeRow{0, StorageFormat::f32, false}, TypeRow{1, StorageFormat::f16, false},
    TypeRow{2, StorageFormat::q4_0, true}, TypeRow{3, StorageFormat::q4_1, true},
    TypeRow{6, StorageFormat::q5_0, true}, TypeRow{7, StorageFormat::q5_1, true},
    TypeRow{8, StorageFormat::q8_0, true},
};
struct OtherType {
  std::int32_t id;
  std::string_view name;
};
constexpr std::array kOtherTypes = {
    OtherType{4, "q4_2"},  OtherType{5, "q4_3"},  OtherType{9, "q8_1"},
    OtherType{10, "q2_k"}, OtherType{11, "q3_k"}, OtherType{12, "q4_k"},
    OtherType{13, "q5_k"}, OtherType{14, "q6_k"}, OtherType{15, "q8_k"},
};

Result<StorageFormat> format_of(std::int32_t id, std::int32_t ftype, const std::string& name) {
  for (const auto& row : kTypes) {
    if (row.id != id) continue;
    // Before version 2 the blocks had another layout under the same numbers.
    if (row.blocks && ftype / kVersionFactor != kBlockVersion) {
      return refuse_ggml("quantized in the block layout of version " +
                    std::to_string(ftype / kVersionFactor) + "; version 2 is read");
    }
    return row.format;
  }
  for (const auto& row : kOtherTypes) {
    if (row.id == id) {
      return refuse_ggml("the tensor '" + name + "' is stored as " + std::string(row.name));
    }
  }
  return bad_ggml("the tensor '" + name + "' has the unknown type " + std::to_string(id));
}

// n_dims, name length, type, extents (the innermost first), name, data.
Status read_tensor(ByteReader& reader, std::int32_t ftype, StateDict& dict) {
  const auto rank =
      static_cast<std::size_t>(TRY(read_count(reader, "the number of axes", 1, kMaxRank)));
  const auto name_size = TRY(read_count(reader, "the length of a tensor's name", 1, kMaxGgmlName));
  const auto type = TRY(reader.read<std::int32_t>());
  std::array<std::int64_t, kMaxRank> extents{};
  for (std::size_t i = rank; i-- > 0;) {
    extents[i] = TRY(read_count(reader, "an extent of a tensor", 1, INT32_MAX));
  }
  const auto name = TRY(reader.take_string(static_cast<std::uint64_t>(name_size)));
  const auto printable = [](char c) { return c >= 0x20 && c < 0x7F; };
  if (!std::all_of(name.begin(), name.end(), printable)) {
    return bad_ggml("a tensor's name has control characters");
  }
  StoredTensor tensor;
  tensor.format = TRY(format_of(type, ftype, name));
  const auto shape = Shape::checked(std::span(extents.data(), rank));
  const auto size = shape ? storage_bytes(tensor.format, *shape) : std::nullopt;
  if (!size) {
    return bad_ggml("the tensor '" + name + "' has a shape that is too large or not a multiple of 32");
  }
  tensor.shape = *shape;
  if (*size > reader.remaining()) {
    return bad_ggml("ends inside the tensor '" + name + "' " + shape->to_string());
  }
  tensor.bytes = TRY(reader.take(*size));
  if (!dict.tensors.emplace(name, tensor).second) {
    return bad_ggml("the tensor '" + name + "' appears twice");
  }
  return {};
}

void note_formats(Checkpoint& checkpoint) {
  std::set<std::string_view> names;
  for (const auto& [name, tensor] : checkpoint.tensors.tensors) {
    if (tensor.format == StorageFormat::f32 || tensor.format == StorageFormat::f16) continue;
    names.insert(enum_name(storage_format_names(), tensor.format));
  }
  for (const auto name : names) {
    checkpoint.notes.push_back("weights are stored as " + std::string(name) +
                               " and dequantized to float");
  }
}

std::string hparams_json(const Header& header) {
  OrderedJson json = OrderedJson::object();
  for (std::size_t i = 0; i < kDimNames.size(); ++i) {
    json[std::string(kDimNames[i])] = header.dims[i];
  }
  json["ftype"] = header.ftype;
  return dump_json(json);
}

Result<Checkpoint> read_ggml_model(const FileBytes& file) {
  ByteReader reader(file.bytes, "ggml file");
  const auto header = TRY(read_ggml_header(reader));
  TRY(skip_filters(reader, header.dims[0]));
  Checkpoint checkpoint;
  checkpoint.container = "ggml";
  checkpoint.path = file.path;
  checkpoint.files.push_back(file.path);
  checkpoint.documents["dims"] = dims_json(header.dims);
  checkpoint.documents["hparams"] = hparams_json(header);
  checkpoint.tokenizer.tokens = TRY(read_vocabulary(reader, header.dims[1]));
  checkpoint.tokenizer.kind = "ranks";
  checkpoint.tokenizer.origin = "the vocabulary inside the ggml file";
  while (reader.remaining() > 0) TRY(read_tensor(reader, header.ftype, checkpoint.tensors));
  checkpoint.tensors.owners.push_back(file.owner);
  if (file.owner != nullptr) checkpoint.tensors.mapped.push_back(file.owner);
  note_formats(checkpoint);
  return checkpoint;
}

}  // namespace

int detect_ggml(const fs::path& path) {
  const auto head = first_bytes(path, sizeof kMagic);
  ByteReader reader(std::as_bytes(std::span(head.data(), head.size())), "ggml file");
  return reader.read<std::uint32_t>().value_or(0) == kMagic ? kByContent : kNotThis;
}

Result<Checkpoint> read_ggml(const FileBytes& file) { return located(read_ggml_model(file), file.where()); }

Result<Checkpoint> read_ggml(const fs::path& path) { return read_ggml(TRY(FileBytes::map(path))); }

}  // namespace oasr
