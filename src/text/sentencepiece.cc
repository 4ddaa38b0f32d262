#include "text/sentencepiece.h"

#include <sentencepiece_processor.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>

// Exported, but in no installed header. The library itself must not print.
namespace sentencepiece::logging {
void SetMinLogLevel(int level);
}

namespace oasr {
namespace {

// The fields of a protocol buffer message, without a schema.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view bytes) : bytes_(bytes) {}

  struct Field {
    std::uint64_t number = 0;
    std::string_view bytes;  // of a length-delimited field; else empty
  };

  // The next field; nothing at the end or where the bytes are no message.
  std::optional<Field> next() {
    const auto key = varint();
    if (!key) return std::nullopt;
    Field field{*key >> 3, {}};
    const unsigned type = static_cast<unsigned>(*key & 7);
    if (type == 0) return varint() ? std::optional(field) : std::nullopt;
    std::uint64_t size = type == 1 ? 8 : 4;
    if (type == 2) {
      const auto length = varint();
      if (!length) return std::nullopt;
      size = *length;
    } else if (type != 1 && type != 5) {
      return std::nullopt;
    }
    if (size > bytes_.size()) return std::nullopt;
    if (type == 2) field.bytes = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return field;
  }

 private:
  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) return std::nullopt;
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  std::string_view bytes_;
};

// A precompiled map of characters: the size of a double-array trie (darts-clone), the trie, and the
// replacements that its values point to, each ended by a zero byte. The library follows it without
// looking, so every step from every unit must stay inside.
bool is_sound_map(std::string_view map) {
  std::uint32_t size = 0;
  if (map.size() <= sizeof size) return false;
  std::memcpy(&size, map.data(), sizeof size);
  map.remove_prefix(sizeof size);
  if (size == 0 || size % sizeof(std::uint32_t) != 0) return false;
  if (size >= map.size() || map.back() != '\0') return false;
  std::vector<std::uint32_t> units(size / sizeof(std::uint32_t));
  std::memcpy(units.data(), map.data(), size);
  const std::size_t replacements = map.size() - size;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const std::uint32_t unit = units[i];
    // A value, from which nothing leads on; but the library starts at the root whatever it is.
    if (i != 0 && unit >> 31 != 0) continue;
    const std::uint32_t offset = (unit >> 10) << ((unit & 0x200U) >> 6);
    const std::size_t base = i ^ std::size_t{offset};
    if ((base | 0xFF) >= units.size()) return false;
    const bool ends = (unit & 0x100U) != 0;
    if (ends && (units[base] & 0x7FFFFFFFU) >= replacements) return false;
  }
  return true;
}

// The normaliser's and the denormaliser's maps (ModelProto fields 3 and 5, field 2 of either).
bool has_sound_maps(std::string_view model) {
  ProtoReader fields(model);
  while (const auto field = fields.next()) {
    if (field->number != 3 && field->number != 5) continue;
    ProtoReader spec(field->bytes);
    while (const auto entry = spec.next()) {
      if (entry->number == 2 && !entry->bytes.empty() && !is_sound_map(entry->bytes)) return false;
    }
  }
  return true;
}

Unexpected bad_model(const std::string& what, const std::string& origin) {
  return unexpected(ErrorCode::bad_checkpoint, what, origin,
                    "give the .model file that sentencepiece wrote for this checkpoint");
}

}  // namespace

Result<std::shared_ptr<const SentencePieces>> SentencePieces::load(std::string_view model,
                                                                   const std::string& origin) {
  if (!has_sound_maps(model)) {
    return bad_model("the normaliser of the SentencePiece model points outside itself", origin);
  }
  constexpr int kNothing = 4;  // above FATAL
  sentencepiece::logging::SetMinLogLevel(kNothing);
  auto processor = std::make_unique<sentencepiece::SentencePieceProcessor>();
  try {
    const auto status = processor->LoadFromSerializedProto(model);
    if (!status.ok()) {
      return bad_model("this is no SentencePiece model: " + status.ToString(), origin);
    }
  } catch (const std::exception& error) {  // of the trie that it builds
    return bad_model(
        std::string("the pieces of the SentencePiece model are damaged: ") + error.what(), origin);
  }
  return std::shared_ptr<const SentencePieces>(new SentencePieces(std::move(processor)));
}

SentencePieces::SentencePieces(std::unique_ptr<sentencepiece::SentencePieceProcessor> processor)
    : processor_(std::move(processor)) {}
SentencePieces::~SentencePieces() = default;

std::vector<std::string> SentencePieces::pieces(std::string_view text) const {
  std::vector<std::string> found;
  if (!processor_->Encode(text, &found).ok()) found.clear();
  return found;
}

std::vector<int> SentencePieces::ids(std::string_view text) const {
  std::vector<int> found;
  if (!processor_->Encode(text, &found).ok()) found.clear();
  return found;
}

int SentencePieces::size() const { return processor_->GetPieceSize(); }
const std::string& SentencePieces::piece(int id) const { return processor_->IdToPiece(id); }

SentencePieces::Kind SentencePieces::kind(int id) const {
  if (processor_->IsUnknown(id)) return Kind::unknown;
  if (processor_->IsControl(id)) return Kind::control;
  if (processor_->IsByte(id)) return Kind::byte;
  return processor_->IsUnused(id) ? Kind::unused : Kind::text;
}

}  // namespace oasr
