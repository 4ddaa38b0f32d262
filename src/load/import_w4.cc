#include "load/import_w4.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>

#include "base/json.h"
#include "checkpoint/tensor_checksums.h"
#include "oasr/version.h"
#include "quant/methods/w4a8_linear.h"

namespace oasr::load {
namespace {

using formats::ImportedW4;
using formats::W4Form;
using formats::W4Weight;
using ForeignLayerMap = std::map<std::string, ForeignTensors, std::less<>>;

constexpr std::array<std::string_view, 7> kDocumentKeys = {
    "format", "format_version", "group_size", "zero_domain", "scale_order", "quantization", "checksums"};

Unexpected bad(std::string what, std::string where) {
  return unexpected(ErrorCode::bad_checkpoint, std::move(what), std::move(where));
}

// `result` with `layer` before the place of its error.
template <class T>
Result<T> of_layer(Result<T> result, const std::string& layer) {
  if (!result) {
    std::string& where = result.error().where;
    where = where.empty() ? layer : layer + ": " + where;
  }
  return result;
}

// What a claim says of one thing and another of the same has to be one.
template <class E>
Status merge(std::optional<E>& claim, const std::optional<E>& said, const char* key, std::string_view who) {
  if (claim && said && *claim != *said) {
    return unexpected(ErrorCode::invalid_argument,
                      fmt::format("{} is said to be something else by {}", key, who), "w4");
  }
  if (!claim) claim = said;
  return {};
}

std::optional<W4Form> form_of_group_size(const Json& size) {
  if (size == Json(formats::kGroup)) return W4Form::per_group;
  if (size == Json(-1)) return W4Form::per_channel;
  return std::nullopt;
}

// What config.json says in the way of SGLang: {"quant_method": "qoq", "wbits": 4, "group_size": -1}.
Status merge_config(W4Claims& claims, const Checkpoint& checkpoint) {
  const auto document = checkpoint.documents.find("config.json");
  if (document == checkpoint.documents.end()) return {};
  const Json config = TRY(parse_json(document->second, "config.json"));
  const auto found = config.find("quantization_config");
  if (found == config.end() || !found->is_object() || found->value("quant_method", Json()) != Json("qoq"))
    return {};
  const auto form = form_of_group_size(found->value("group_size", Json()));
  if (found->value("wbits", Json()) != Json(4) || !form) {
    return unexpected(ErrorCode::unsupported,
                      "quantization_config is qoq with other bits than 4, or another group_size "
                      "than 128 and -1",
                      "config.json");
  }
  return merge(claims.form, form, "group", "config.json");
}

// Past the string that begins at `at` in a JSON text.
std::size_t after_string(std::string_view text, std::size_t at) {
  for (++at; text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
  return at + 1;
}

// A valid JSON object without its first member `key`: the spelling of everything else stays, numbers above all.
std::string without_member(std::string text, std::string_view key) {
  std::size_t before = 0, begin = text.npos;  // the { or , before the member, and where that is cut
  int depth = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      const std::size_t end = after_string(text, at);
      const bool is_key = text.find_first_not_of(" \t\r\n", before + 1) == at;
      if (depth == 1 && is_key && text.substr(at + 1, end - at - 2) == key && begin == text.npos) begin = before;
      at = end;
      continue;
    }
    const bool ends = depth == 1 && (c == ',' || c == '}');
    if (ends && begin != text.npos) {
      const bool first = text[begin] == '{';
      return first ? text.erase(begin + 1, at - begin - (c == ',' ? 0 : 1)) : text.erase(begin, at - begin);
    }
    depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
    if (depth == 1 && (c == '{' || c == ',')) before = at;
    ++at;
  }
  return text;
}

// Takes what config.json says of another toolkit's quantization out of it, since it is not how the weights are
// stored from now on. Its text, as one line; empty: it says nothing.
Result<std::string> take_quantization_config(Checkpoint& checkpoint) {
  constexpr const char* kKey = "quantization_config";
  const auto document = checkpoint.documents.find("config.json");
  if (document == checkpoint.documents.end()) return std::string();
  const Json config = TRY(parse_json(document->second, "config.json"));
  if (!config.contains(kKey)) return std::string();
  document->second = without_member(std::move(document->second), kKey);
  const Json left = TRY(parse_json(document->second, "config.json"));
  if (left.contains(kKey)) return bad("quantization_config comes twice, or is spelled with escapes", "config.json");
  return dump_json(config.at(kKey));
}

// Rows of all parts behind each other.
W4Weight stacked(std::vector<W4Weight> parts) {
  W4Weight all = std::move(parts[0]);
  const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  for (std::size_t i = 1; i < parts.size(); ++i) {
    all.n += parts[i].n;
    append(all.codes, parts[i].codes);
    append(all.channel_scale, parts[i].channel_scale);
    append(all.group_scale, parts[i].group_scale);
    append(all.scaled_zero, parts[i].scaled_zero);
    append(all.channel_zero, parts[i].channel_zero);
  }
  return all;
}

class Importer {
 public:
  Importer(Checkpoint& checkpoint, ForeignW4 toolkit, const W4Claims& claims)
      : state_(checkpoint.tensors),
        layers_(take_foreign_layers(checkpoint.tensors, toolkit)),
        toolkit_(toolkit),
        claims_(claims) {}

  Status run(std::span<const quant::LayerFacts> facts) {
    for (const quant::LayerFacts& layer : facts) {
      const std::vector<std::string> parts = layer.parts.empty() ? std::vector{layer.path} : layer.parts;
      const auto known = [&](const std::string& part) { return layers_.contains(part); };
      const auto foreign = std::ranges::count_if(parts, known);
      if (foreign == 0) {
        if (parts.size() > 1) TRY(stack_full_precision(layer.path, parts));
        continue;
      }
      if (foreign != std::ssize(parts)) {
        return bad(
            fmt::format("only some of {} are in 4 bits: here they are one layer", fmt::join(parts, ", ")),
            layer.path);
      }
      TRY(import_layer(layer.path, parts));
    }
    if (layers_.empty()) return {};
    return bad("the model has no such layer to quantize", layers_.begin()->first);
  }

  std::map<std::string, quant::QuantizedLayer, std::less<>> quantized;
  std::map<std::string, std::string> requantized;  // by the foreign layer's path: at what error

 private:
  Status import_layer(const std::string& path, const std::vector<std::string>& parts) {
    std::vector<W4Weight> weights;
    std::vector<std::int64_t> rows;
    for (const std::string& part : parts) {
      const auto found = layers_.find(part);
      ImportedW4 imported = TRY(of_layer(foreign_weight(toolkit_, found->second, claims_), part));
      layers_.erase(found);
      if (!imported.exact) {
        requantized[part] = fmt::format("relative error {:.2g}, {:.2g} in the worst row", imported.error,
                                        imported.worst_error);
      }
      rows.push_back(imported.weight.n);
      weights.push_back(std::move(imported.weight));
      const W4Weight &first = weights.front(), &last = weights.back();
      if (last.form != first.form || last.domain != first.domain || last.k != first.k) {
        return bad(
            fmt::format("has other columns, groups or zeros than {}: here they are one layer", parts[0]),
            part);
      }
    }
    const W4Weight weight = stacked(std::move(weights));
    auto stored = TRY(of_layer(quant::stored_w4(weight, {}), path));
    const auto tensors = std::make_shared<const quant::QuantizedTensors>(std::move(stored));
    state_.owners.push_back(tensors);
    for (const auto& [suffix, tensor] : tensors->view()) TRY(put(path + "." + suffix, tensor));
    const char* scheme = weight.form == W4Form::per_group ? "w4a8_g128" : "w4a8_chn";
    quantized[path] = {.scheme = scheme, .smoothed = false, .zero_domain = weight.domain};
    return parts.size() > 1 ? stack_biases(path, parts, rows) : Status();
  }

  // A tensor of our own name, which the checkpoint may not have beside the parts.
  Status put(const std::string& name, const StoredTensor& tensor) {
    if (state_.tensors.emplace(name, tensor).second) return {};
    return bad("is there beside what it is made of", name);
  }

  template <class T>
  Status put(const std::string& name, StorageFormat format, const Shape& shape, std::vector<T> values) {
    auto kept = std::make_shared<const std::vector<T>>(std::move(values));
    const auto bytes = std::as_bytes(std::span(*kept));
    state_.owners.push_back(std::move(kept));
    return put(name, {.format = format, .shape = shape, .bytes = bytes, .row_scale = {}});
  }

  // Takes a tensor out of the state dict; its bytes stay.
  Result<StoredTensor> take(const std::string& name) {
    const auto found = state_.tensors.find(name);
    if (found == state_.tensors.end()) return bad("is missing", name);
    const StoredTensor tensor = found->second;
    state_.tensors.erase(found);
    return tensor;
  }

  // Parts without a bias (Whisper's keys) get zeros; if none has one, there is none.
  Status stack_biases(const std::string& path, const std::vector<std::string>& parts,
                      const std::vector<std::int64_t>& rows) {
    std::vector<float> bias;
    bool any = false;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::string name = parts[i] + ".bias";
      std::vector<float> values(static_cast<std::size_t>(rows[i]), 0.0f);
      if (state_.tensors.contains(name)) {
        const StoredTensor tensor = TRY(take(name));
        if (tensor.shape != Shape{rows[i]}) {
          return bad(fmt::format("is {} for {} rows", tensor.shape.to_string(), rows[i]), name);
        }
        TRY(of_layer(decode_to_float(tensor, values), name));
        any = true;
      }
      bias.insert(bias.end(), values.begin(), values.end());
    }
    if (!any) return {};
    const Shape shape = {std::ssize(bias)};
    return put(path + ".bias", StorageFormat::f32, shape, std::move(bias));
  }

  // Under the names of our own layers, also of those that nobody quantized; in the dtype that they have.
  Status stack_full_precision(const std::string& path, const std::vector<std::string>& parts) {
    const StoredTensor first = TRY(state_.find(parts[0] + ".weight"));
    std::vector<std::byte> bytes;
    std::vector<std::int64_t> rows;
    std::int64_t all_rows = 0;
    for (const std::string& part : parts) {
      const std::string name = part + ".weight";
      const StoredTensor tensor = TRY(take(name));
      if (tensor.shape.rank() != 2 || tensor.format != first.format || tensor.shape[1] != first.shape[1]) {
        return bad(fmt::format("is {} and does not fit {}", tensor.shape.to_string(), parts[0]), name);
      }
      rows.push_back(tensor.shape[0]);
      all_rows += tensor.shape[0];
      bytes.insert(bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
    }
    TRY(put(path + ".weight", first.format, {all_rows, first.shape[1]}, std::move(bytes)));
    return stack_biases(path, parts, rows);
  }

  StateDict& state_;
  ForeignLayerMap layers_;
  ForeignW4 toolkit_;
  W4Claims claims_;
};

quant::QuantizationSpec spec_of(const Importer& importer, ForeignW4 toolkit, const W4Claims& claims) {
  quant::QuantizationSpec spec;
  spec.layers = importer.quantized;
  std::set<std::string> schemes;
  for (const auto& [path, layer] : spec.layers) schemes.insert(layer.scheme);
  spec.schemes.assign(schemes.begin(), schemes.end());
  const std::string source(enum_name(foreign_w4_names(), toolkit));
  spec.producer = {.tool = "oasr",
                   .version = version(),
                   .recipe = std::string(kImportRecipe) + source,
                   .skipped = {},
                   .options = {}};
  if (const std::string said = w4_claims_text(claims); !said.empty()) spec.producer.options["w4"] = said;
  for (const auto& [path, error] : importer.requantized) spec.producer.options["requantized." + path] = error;
  return spec;
}

}  // namespace

std::string qserve_document_text(const QServeDocument& document) {
  const W4Claims& claims = document.claims;
  CHECK(claims.form && claims.zeros && claims.order, "a document that leaves something unsaid");
  OrderedJson json;
  json["format"] = "qserve";
  json["format_version"] = 1;
  json["group_size"] = *claims.form == W4Form::per_group ? formats::kGroup : -1;
  json["zero_domain"] = enum_name(formats::zero_domain_names(), *claims.zeros);
  json["scale_order"] = enum_name(formats::scale_order_names(), *claims.order);
  json["quantization"] = quant::to_json(document.spec);
  json["checksums"] = OrderedJson::object();
  for (const auto& [tensor, checksum] : document.tensors) json["checksums"][tensor] = checksum_text(checksum);
  return dump_json(json, 2) + "\n";
}

Result<QServeDocument> read_qserve_document(std::string_view text) {
  const Json json = TRY(parse_json(text, kQServeDocument));
  const auto wrong = [](std::string_view key) {
    return bad(fmt::format("'{}' is missing or unknown", key), kQServeDocument);
  };
  if (!json.is_object()) return bad("is not a JSON object", kQServeDocument);
  for (const auto& [key, value] : json.items()) {
    if (std::ranges::find(kDocumentKeys, key) == kDocumentKeys.end()) return wrong(key);
  }
  const auto value = [&](std::string_view key) { return json.value(std::string(key), Json()); };
  const auto name = [&](std::string_view key) {
    return value(key).is_string() ? value(key).get<std::string>() : std::string();
  };
  if (name("format") != "qserve") return wrong("format");
  if (value("format_version") != Json(1)) return wrong("format_version");
  QServeDocument document;
  document.claims.form = form_of_group_size(value("group_size"));
  document.claims.zeros = parse_enum(formats::zero_domain_names(), name("zero_domain"));
  document.claims.order = parse_enum(formats::scale_order_names(), name("scale_order"));
  if (!document.claims.form) return wrong("group_size");
  if (!document.claims.zeros) return wrong("zero_domain");
  if (!document.claims.order) return wrong("scale_order");
  document.spec = TRY(of_layer(quant::spec_from_json(value("quantization")), kQServeDocument));
  if (!value("checksums").is_object()) return wrong("checksums");
  for (const auto& [tensor, text] : json["checksums"].items()) {
    const auto checksum = text.is_string() ? parse_checksum(text.get<std::string>()) : std::nullopt;
    if (!checksum) return bad(fmt::format("the checksum of {} is none", tensor), kQServeDocument);
    document.tensors.emplace(tensor, *checksum);
  }
  return document;
}

Result<ImportedCheckpoint> import_w4(Checkpoint checkpoint, const W4Claims& given) {
  const ForeignW4 toolkit = TRY(foreign_w4(checkpoint));
  CHECK(toolkit != ForeignW4::none, "an import of nothing");
  const models::Architecture* architecture = TRY(models::find_architecture(checkpoint));
  const auto facts = TRY(architecture->layer_facts(checkpoint));
  W4Claims claims = given;
  TRY(merge_config(claims, checkpoint));
  std::optional<QServeDocument> document;
  if (const auto found = checkpoint.documents.find(kQServeDocument); found != checkpoint.documents.end()) {
    document = TRY(read_qserve_document(found->second));
    if (auto checked = check_tensors(checkpoint.tensors, document->tensors, kQServeDocument); !checked) {
      checked.error().remedy =
          "copy the folder again; of changed tensors delete qserve.json and say with --w4 what it "
          "says";
      return unexpected(std::move(checked).error());
    }
    TRY(merge(claims.form, document->claims.form, "group", kQServeDocument));
    TRY(merge(claims.zeros, document->claims.zeros, "zeros", kQServeDocument));
    // Channels have no order: the document's is that of all files, and is no claim then.
    if (claims.form == W4Form::per_group) {
      TRY(merge(claims.order, document->claims.order, "order", kQServeDocument));
    }
    checkpoint.documents.erase(found);
  }
  Importer importer(checkpoint, toolkit, claims);
  TRY(importer.run(facts));
  quant::QuantizationSpec spec = spec_of(importer, toolkit, claims);
  if (document) {
    if (document->spec.layers != spec.layers) {
      return bad("quantization names other layers than there are, or of other schemes", kQServeDocument);
    }
    spec = std::move(document->spec);
  }
  if (const std::string said = TRY(take_quantization_config(checkpoint)); !said.empty()) {
    spec.producer.options["quantization_config"] = said;
  }
  checkpoint.documents["quantization"] = dump_json(quant::to_json(spec));
  checkpoint.architecture = architecture->name;
  checkpoint.source_container = checkpoint.container;
  checkpoint.container = "native";
  ImportedCheckpoint imported{.checkpoint = std::move(checkpoint), .notes = {}};
  for (const auto& [path, error] : importer.requantized)
    imported.notes.push_back(path + ": requantized, " + error);
  return imported;
}

Result<LoadedModel> load_for_conversion(const std::filesystem::path& path, const LoadOptions& options,
                                        const W4Claims* claims, const ExecContext& context) {
  Checkpoint checkpoint = TRY(open_checkpoint(path));
  if (TRY(foreign_w4(checkpoint)) == ForeignW4::none) {
    if (claims == nullptr) return load_checkpoint(std::move(checkpoint), options, context);
    return unexpected(ErrorCode::invalid_argument, "the checkpoint has no 4-bit weights of another toolkit",
                      path.string(), "leave out what is said of them");
  }
  auto imported = TRY(
      of_layer(import_w4(std::move(checkpoint), claims == nullptr ? W4Claims() : *claims), path.string()));
  auto loaded = TRY(load_checkpoint(std::move(imported.checkpoint), options, context));
  std::ranges::move(imported.notes, std::back_inserter(loaded.report.notes));
  return loaded;
}

}  // namespace oasr::load
