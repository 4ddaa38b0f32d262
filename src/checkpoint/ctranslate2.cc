// faster-whisper's folder: model.bin, config.json, tokenizer.json and vocabulary.*.

#include "checkpoint/ctranslate2.h"

#include <cmath>
#include <cstring>
#include <set>

#include "base/byte_reader.h"
#include "base/json.h"
#include "checkpoint/containers.h"
#include "checkpoint/damaged.h"

namespace oasr {
namespace {

constexpr std::uint32_t kBinaryVersion = 6;
constexpr std::string_view kSpec = "WhisperSpec";
constexpr std::uint32_t kRevision = 3;
constexpr std::string_view kScaleSuffix = "_scale";
constexpr std::size_t kMaxVariableName = 512;

Unexpected bad_ct2(std::string what) { return damaged("CTranslate2 model", what); }

Unexpected refuse_ct2(std::string what) {
  return unexpected(ErrorCode::unsupported, "CTranslate2 model: " + std::move(what), {},
                    "convert the model again with a current ct2-transformers-converter");
}

// u16 length with the final zero, then the bytes.
Result<std::string> read_text(ByteReader& reader) {
  const auto size = TRY(reader.read<std::uint16_t>());
  auto text = TRY(reader.take_string(size));
  if (text.empty() || text.back() != '\0') return bad_ct2("a text without its final zero");
  text.pop_back();
  if (text.empty() || text.size() > kMaxVariableName || text.find('\0') != text.npos) {
    return bad_ct2("a name that is empty, too long or has a zero byte");
  }
  return text;
}

Status check_header(ByteReader& reader) {
  const auto version = TRY(reader.read<std::uint32_t>());
  if (version != kBinaryVersion) {
    return refuse_ct2("binary version " + std::to_string(version) + "; version 6 is read");
  }
  const auto spec = TRY(read_text(reader));
  const auto revision = TRY(reader.read<std::uint32_t>());
  if (spec != kSpec || revision != kRevision) {
    return refuse_ct2("specification " + spec + " revision " + std::to_string(revision) +
                  "; WhisperSpec revision 3 is read");
  }
  return {};
}

Result<StorageFormat> format_of(std::uint8_t id, const std::string& name) {
  constexpr std::array kFormats = {StorageFormat::f32, StorageFormat::i8,  StorageFormat::i16,
                                   StorageFormat::i32, StorageFormat::f16, StorageFormat::bf16};
  if (id >= kFormats.size()) {
    return refuse_ct2("'" + name + "' has the unknown data type " + std::to_string(id));
  }
  return kFormats[id];
}

Status read_variable(ByteReader& reader, Ct2Model& model) {
  const auto name = TRY(read_text(reader));
  const auto rank = TRY(reader.read<std::uint8_t>());
  if (rank > Shape::kMaxRank) return bad_ct2("'" + name + "' has " + std::to_string(rank) + " axes");
  std::array<std::int64_t, Shape::kMaxRank> extents{};
  for (std::size_t i = 0; i < rank; ++i) extents[i] = TRY(reader.read<std::uint32_t>());
  StoredTensor tensor;
  tensor.format = TRY(format_of(TRY(reader.read<std::uint8_t>()), name));
  const auto size = TRY(reader.read<std::uint32_t>());
  const auto shape = Shape::checked(std::span(extents.data(), rank));
  if (!shape || storage_bytes(tensor.format, *shape) != std::optional<std::size_t>(size)) {
    return bad_ct2("'" + name + "' has " + std::to_string(size) +
               " bytes, which is not what its shape needs");
  }
  tensor.shape = *shape;
  tensor.bytes = TRY(reader.take(size));
  if (rank == 0) {
    float value = 0;
    TRY(decode_to_float(tensor, {&value, 1}));
    if (!model.scalars.emplace(name, value).second) return bad_ct2("'" + name + "' appears twice");
  }
  if (!model.tensors.tensors.emplace(name, tensor).second) {
    return bad_ct2("'" + name + "' appears twice");
  }
  return {};
}

Status attach_scale(const std::string& name, StoredTensor& tensor, const StoredTensor& scale) {
  if (scale.format != StorageFormat::f32 || scale.shape != Shape{tensor.shape[0]}) {
    return refuse_ct2("the scale of '" + name + "' is not one float32 for each row");
  }
  for (std::size_t at = 0; at < scale.bytes.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, scale.bytes.data() + at, sizeof value);
    if (!std::isfinite(value) || value <= 0) {
      return bad_ct2("a scale of '" + name + "' is not a positive number");
    }
  }
  tensor.format = StorageFormat::ct2_int8;
  tensor.row_scale = scale.bytes;
  return {};
}

// Joins int8 matrices with their scales. Neither scales nor scalars are left among the tensors;
// their names are returned.
Result<std::set<std::string>> join_scales(Ct2Model& model) {
  auto& tensors = model.tensors.tensors;
  std::set<std::string> joined;
  for (auto& [name, tensor] : tensors) {
    if (tensor.shape.rank() == 0) {
      joined.insert(name);
      continue;
    }
    if (tensor.format == StorageFormat::i16 || tensor.format == StorageFormat::i32) {
      return refuse_ct2("'" + name +
                    "' is quantized in a way that is not read; float32, float16, bfloat16 and int8 "
                    "are");
    }
    if (tensor.format != StorageFormat::i8) continue;
    const auto scale = tensors.find(name + std::string(kScaleSuffix));
    if (scale == tensors.end()) return bad_ct2("the int8 matrix '" + name + "' has no scale");
    TRY(attach_scale(name, tensor, scale->second));
    joined.insert(scale->first);
  }
  for (const auto& name : joined) tensors.erase(name);
  return joined;
}

// An alias of an int8 matrix has its scale, whether or not the file has an alias for that, too.
Status read_alias(ByteReader& reader, Ct2Model& model, const std::set<std::string>& joined) {
  const auto alias = TRY(read_text(reader));
  const auto name = TRY(read_text(reader));
  if (joined.contains(name)) return {};
  auto& tensors = model.tensors.tensors;
  const auto target = tensors.find(name);
  if (target == tensors.end()) {
    return bad_ct2("'" + alias + "' is an alias of nothing: '" + name + "'");
  }
  if (!tensors.emplace(alias, target->second).second) return bad_ct2("'" + alias + "' appears twice");
  return {};
}

Result<Ct2Model> read_model(const FileBytes& file) {
  ByteReader reader(file.bytes, "CTranslate2 model");
  TRY(check_header(reader));
  Ct2Model model;
  const auto variables = TRY(reader.read<std::uint32_t>());
  for (std::uint32_t i = 0; i < variables; ++i) TRY(read_variable(reader, model));
  const auto joined = TRY(join_scales(model));
  const auto aliases = TRY(reader.read<std::uint32_t>());
  for (std::uint32_t i = 0; i < aliases; ++i) TRY(read_alias(reader, model, joined));
  if (reader.remaining() > 0) {
    return bad_ct2(std::to_string(reader.remaining()) + " bytes left over at the end");
  }
  model.tensors.owners.push_back(file.owner);
  if (file.owner != nullptr) model.tensors.mapped.push_back(file.owner);
  return model;
}

std::int64_t count_layers(const StateDict& dict, const std::string& side) {
  std::int64_t layers = 0;
  while (
      dict.tensors.contains(side + "/layer_" + std::to_string(layers) + "/ffn/linear_0/weight")) {
    ++layers;
  }
  return layers;
}

// OpenAI's dimensions, from shapes and the numbers of heads.
Result<Dims> derive_dims(const Ct2Model& model) {
  const auto extent = [&](const char* name, std::size_t rank,
                          std::size_t axis) -> Result<std::int64_t> {
    const auto tensor = TRY(model.tensors.find(name));
    if (tensor.shape.rank() != rank) {
      return bad_ct2(std::string("'") + name + "' has the shape " + tensor.shape.to_string());
    }
    return tensor.shape[axis];
  };
  const auto heads = [&](const char* name) -> Result<std::int64_t> {
    const auto it = model.scalars.find(name);
    if (it == model.scalars.end() || it->second < 1) return bad_ct2(std::string("no ") + name);
    return static_cast<std::int64_t>(it->second);
  };
  return Dims{TRY(extent("encoder/conv1/weight", 3, 1)),
              TRY(extent("decoder/embeddings/weight", 2, 0)),
              TRY(extent("encoder/position_encodings/encodings", 2, 0)),
              TRY(extent("encoder/conv1/weight", 3, 0)),
              TRY(heads("encoder/num_heads")),
              count_layers(model.tensors, "encoder"),
              TRY(extent("decoder/position_encodings/encodings", 2, 0)),
              TRY(extent("decoder/embeddings/weight", 2, 1)),
              TRY(heads("decoder/num_heads")),
              count_layers(model.tensors, "decoder")};
}

Result<std::vector<std::string>> read_vocabulary_json(const fs::path& path) {
  const auto json = TRY(parse_json(TRY(read_text_file(path)), path.string()));
  std::vector<std::string> tokens;
  if (!json.is_array()) {
    return unexpected(ErrorCode::bad_checkpoint, "is no list of tokens", path.string());
  }
  for (const auto& token : json) {
    if (!token.is_string()) {
      return unexpected(ErrorCode::bad_checkpoint, "is no list of texts", path.string());
    }
    tokens.push_back(token.get<std::string>());
  }
  return tokens;
}

Result<std::vector<std::string>> read_vocabulary_txt(const fs::path& path) {
  const auto text = TRY(read_text_file(path));
  std::vector<std::string> tokens;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    tokens.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return tokens;
}

Status read_ct2_tokenizer(Checkpoint& checkpoint, const fs::path& folder) {
  auto& source = checkpoint.tokenizer;
  if (path_exists(folder / "tokenizer.json")) {
    source.kind = "tokenizer_json";
    source.origin = "tokenizer.json";
    source.tokenizer_json = TRY(read_text_file(folder / source.origin));
  } else if (path_exists(folder / "vocabulary.json")) {
    source.kind = "vocabulary";
    source.origin = "vocabulary.json";
    source.tokens = TRY(read_vocabulary_json(folder / source.origin));
  } else if (path_exists(folder / "vocabulary.txt")) {
    source.kind = "vocabulary";
    source.origin = "vocabulary.txt";
    source.tokens = TRY(read_vocabulary_txt(folder / source.origin));
  } else {
    checkpoint.notes.push_back("the folder has no tokenizer.json and no vocabulary.*");
    return {};
  }
  checkpoint.files.push_back(folder / source.origin);
  return {};
}

void add_scalars(Checkpoint& checkpoint, const Ct2Model& model) {
  OrderedJson scalars = OrderedJson::object();
  for (const auto& [name, value] : model.scalars) {
    const bool whole = value == std::floor(value) && std::abs(value) < 1e9;
    scalars[name] = whole ? OrderedJson(static_cast<std::int64_t>(value)) : OrderedJson(value);
  }
  checkpoint.documents["scalars"] = dump_json(scalars);
}

void note_int8(Checkpoint& checkpoint) {
  for (const auto& [name, tensor] : checkpoint.tensors.tensors) {
    if (tensor.format != StorageFormat::ct2_int8) continue;
    checkpoint.notes.push_back(
        "weights are stored as int8 with a scale a row and dequantized to float");
    return;
  }
}

fs::path ct2_folder(const fs::path& path) {
  return path.filename() == "model.bin" ? path.parent_path() : path;
}

}  // namespace

Result<Ct2Model> read_ct2_model(const FileBytes& file) {
  return located(read_model(file), file.where());
}

int detect_ctranslate2(const fs::path& path) {
  const auto head = first_bytes(ct2_folder(path) / "model.bin", 64);
  ByteReader reader(std::as_bytes(std::span(head.data(), head.size())), "CTranslate2 model");
  const auto version = reader.read<std::uint32_t>().value_or(0);
  const auto spec = read_text(reader);
  const bool named = spec && spec->ends_with("Spec");  // TransformerSpec, WhisperSpec, …
  return version >= 1 && version < 100 && named ? kByContent : kNotThis;
}

Result<Checkpoint> read_ctranslate2(const fs::path& path) {
  const auto folder = ct2_folder(path);
  const auto file = TRY(FileBytes::map(folder / "model.bin"));
  auto model = TRY(read_ct2_model(file));
  Checkpoint checkpoint;
  checkpoint.container = "ctranslate2";
  checkpoint.path = path;
  checkpoint.files.push_back(file.path);
  checkpoint.documents["dims"] = dims_json(TRY(located(derive_dims(model), file.where())));
  add_scalars(checkpoint, model);
  checkpoint.tensors = std::move(model.tensors);
  for (const char* name : {"config.json", "preprocessor_config.json"}) {
    TRY(add_document(checkpoint, folder, name));
  }
  TRY(read_ct2_tokenizer(checkpoint, folder));
  note_int8(checkpoint);
  return checkpoint;
}

}  // namespace oasr
