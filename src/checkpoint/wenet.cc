// WeNet folders: train.yaml, a torch state dict (final.pt), global_cmvn, units.txt and perhaps bpe.model.

#include <algorithm>
#include <array>

#include "base/json.h"
#include "checkpoint/containers.h"
#include "checkpoint/torch_archive.h"
#include "checkpoint/yaml_document.h"

namespace oasr {
namespace {

constexpr const char* kTrainConfig = "train.yaml";

// A folder, or a file in it.
bool is_torch_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && first_bytes(path, 4) == "PK\3\4";
}

// final.pt, or the only averaged checkpoint (avg_5.pt, avg5.pt, …).
Result<fs::path> weights_in(const fs::path& folder) {
  if (path_exists(folder / "final.pt")) return folder / "final.pt";
  std::vector<fs::path> candidates;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("avg") && name.ends_with(".pt")) candidates.push_back(entry.path());
  }
  std::sort(candidates.begin(), candidates.end());
  if (candidates.size() == 1) return candidates.front();
  std::string what = "has a train.yaml but no final.pt";
  if (candidates.size() > 1) what += ", and several averaged checkpoints (avg*.pt)";
  const bool exported = path_exists(folder / "final.zip");
  if (exported) what += ", only final.zip, an exported program";
  return unexpected(ErrorCode::not_found, what, folder.string(),
                    exported ? "copy the final.pt that it was exported from"
                             : "give the file itself (FOLDER/avg_5.pt)");
}

std::vector<std::string> names_of(const std::vector<std::pair<std::string, PickleId>>& items) {
  std::vector<std::string> names;
  for (const auto& item : items) names.push_back(item.first);
  return names;
}

// Refuses the checkpoints of other toolkits by their name: a list of what they lack would be long.
Status check_kind(const std::vector<std::string>& top, const std::vector<std::string>& names, const fs::path& path) {
  constexpr std::string_view kOurs = "a WeNet checkpoint";
  std::string_view kind = torch_kind(names);
  if (kind == kOurs) return {};
  if (const auto outer = torch_kind(top); kind.empty() && outer != kOurs) kind = outer;
  std::string begins;
  for (std::size_t i = 0; i < std::min<std::size_t>(top.size(), 3); ++i) {
    begins += (i > 0 ? ", " : "") + top[i].substr(0, 60);
  }
  return unexpected(ErrorCode::unsupported,
                    "is a PyTorch file of " + std::string(kind.empty() ? "an unknown kind of checkpoint" : kind) +
                        " (it begins with: " + begins + "), not WeNet's state dict with encoder.encoders.…",
                    path.string(), "give the final.pt or avg_*.pt that WeNet's training wrote beside the train.yaml");
}

Status read_wenet_weights(Checkpoint& checkpoint, const fs::path& path) {
  const FileBytes file = TRY(FileBytes::map(path));
  auto archive = TRY(located(TorchArchive::open(file), file.where()));
  auto items = TRY(located(archive.items(archive.pickle().root(), "the checkpoint"), file.where()));
  const auto top = names_of(items);
  for (const auto& [name, id] : items) {  // training scripts of others nest it
    if (name != "model" && name != "state_dict") continue;
    items = TRY(located(archive.items(PickleId(id), name), file.where()));
    break;
  }
  TRY(check_kind(top, names_of(items), path));
  for (const auto& [name, id] : items) {
    checkpoint.tensors.tensors.emplace(name, TRY(located(archive.tensor(id, name), file.where())));
  }
  checkpoint.tensors.owners = archive.owners();
  if (file.owner != nullptr) checkpoint.tensors.mapped.push_back(file.owner);
  checkpoint.files.push_back(path);
  return {};
}

// A file that train.yaml names: beside it, by its own name. Configurations keep the paths of the
// machine that trained.
fs::path beside(const fs::path& folder, const std::string& named) {
  return folder / fs::path(named).filename();
}

std::string text_at(const Json& json, std::initializer_list<const char*> keys) {
  const Json* at = &json;
  for (const char* key : keys) {
    if (!at->is_object() || !at->contains(key)) return {};
    at = &(*at)[key];
  }
  return at->is_string() ? at->get<std::string>() : std::string();
}

// Statistics of the features: what train.yaml names, or global_cmvn. Kept as JSON text either way.
Status read_cmvn(Checkpoint& checkpoint, const fs::path& folder, const Json& config) {
  std::string name = text_at(config, {"cmvn_conf", "cmvn_file"});
  if (name.empty()) name = text_at(config, {"cmvn_file"});
  const bool named = !name.empty();
  const fs::path path = beside(folder, named ? name : "global_cmvn");
  if (!path_exists(path)) {
    // The state dict has the same numbers; the model says so when it has neither.
    if (named) checkpoint.notes.push_back("train.yaml names " + name + ", which is not in the folder");
    return {};
  }
  OrderedJson document = OrderedJson::object();
  document["text"] = TRY(read_text_file(path));
  checkpoint.documents["global_cmvn"] = dump_json(document);
  checkpoint.files.push_back(path);
  return {};
}

Status read_units(Checkpoint& checkpoint, const fs::path& folder, const Json& config) {
  TokenizerSource& source = checkpoint.tokenizer;
  std::string name = text_at(config, {"tokenizer_conf", "symbol_table_path"});
  std::vector<std::string> names = {"units.txt", "words.txt", "dict.txt", "lang_char.txt"};
  if (!name.empty()) names.insert(names.begin(), name);
  for (const std::string& candidate : names) {
    const fs::path path = beside(folder, candidate);
    if (!path_exists(path)) continue;
    source.kind = "units";
    source.origin = path.filename().string();
    source.units_txt = TRY(read_text_file(path));
    if (source.units_txt.find('\0') != std::string::npos) {
      return unexpected(ErrorCode::bad_checkpoint, "holds zero bytes: it is no table of units", path.string());
    }
    checkpoint.files.push_back(path);
    break;
  }
  if (source.kind != "units") {
    return unexpected(ErrorCode::not_found, "has no units.txt", folder.string(),
                      "put the unit table of the same training into the folder");
  }
  std::vector<std::string> models = {"bpe.model"};
  name = text_at(config, {"tokenizer_conf", "bpe_path"});
  if (!name.empty()) models.insert(models.begin(), name);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto file = entry.path().filename().string();
    if (file.starts_with("train_") && file.ends_with(".model")) models.push_back(file);
  }
  for (const std::string& candidate : models) {
    const fs::path path = beside(folder, candidate);
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored)) continue;
    source.sentencepiece_model = TRY(read_text_file(path));
    if (source.sentencepiece_model.empty()) {
      return unexpected(ErrorCode::bad_checkpoint, "is empty", path.string(),
                        "copy it again, or remove it: it only spells phrases");
    }
    source.origin += " and " + path.filename().string();
    checkpoint.files.push_back(path);
    break;
  }
  return {};
}

bool names_an_encoder(const fs::path& config) {
  const auto text = read_text_file(config);
  return text && text->find("encoder_conf") != std::string::npos;
}

}  // namespace

int detect_wenet(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored) && path.filename() != kTrainConfig && !is_torch_file(path)) {
    return kNotThis;
  }
  const fs::path folder = folder_of(path), config = folder / kTrainConfig;
  if (!path_exists(config)) return kNotThis;
  if (names_an_encoder(config)) return kByConfig;
  // Other programs write a train.yaml too: beside a final.pt it is more likely WeNet's, and incomplete.
  return folder == path && path_exists(folder / "final.pt") ? kByLayout : kNotThis;
}

Result<Checkpoint> read_wenet(const fs::path& path) {
  const fs::path folder = folder_of(path);
  Checkpoint checkpoint;
  checkpoint.container = "wenet";
  checkpoint.path = path;
  const fs::path config = folder / kTrainConfig;
  checkpoint.files.push_back(config);
  const Json json = TRY(parse_yaml(TRY(read_text_file(config)), config.string()));
  if (!json.is_object()) {
    return unexpected(ErrorCode::bad_checkpoint, "is not a mapping of names to values", config.string());
  }
  if (!json.contains("encoder_conf") || !json["encoder_conf"].is_object()) {
    const bool there = json.contains("encoder_conf");
    return unexpected(ErrorCode::bad_checkpoint,
                      there ? "has an encoder_conf that is not a mapping" : "has no encoder_conf", config.string(),
                      "take the train.yaml that WeNet's training wrote beside the checkpoint");
  }
  checkpoint.documents[kTrainConfig] = json.dump();
  TRY(read_cmvn(checkpoint, folder, json));
  TRY(read_units(checkpoint, folder, json));
  TRY(read_wenet_weights(checkpoint, is_torch_file(path) ? path : TRY(weights_in(folder))));
  return checkpoint;
}

}  // namespace oasr
