// OpenAI's Whisper checkpoints: a torch file of {"dims": …, "model_state_dict": …}.

#include <algorithm>
#include <array>

#include "checkpoint/containers.h"
#include "checkpoint/torch_archive.h"

namespace oasr {
namespace {

using Items = std::vector<std::pair<std::string, PickleId>>;

const PickleId* find(const Items& items, std::string_view key) {
  const auto it =
      std::find_if(items.begin(), items.end(), [&](const auto& item) { return item.first == key; });
  return it == items.end() ? nullptr : &it->second;
}

Unexpected refuse_other(const Items& top) {
  std::vector<std::string> names;
  for (const auto& item : top) names.push_back(item.first);
  std::string what(torch_kind(names));
  if (what.empty()) what = "an unknown kind of checkpoint";
  std::string keys;
  for (std::size_t i = 0; i < std::min<std::size_t>(top.size(), 3); ++i) {
    keys += (i > 0 ? ", " : "") + top[i].first.substr(0, 60);
  }
  return unexpected(ErrorCode::unsupported, "is a PyTorch file of " + what +
                                                " (it begins with: " + keys +
                                                "), not OpenAI's with dims and model_state_dict");
}

Result<Dims> read_dims(const TorchArchive& archive, PickleId id) {
  const auto items = TRY(archive.items(id, "dims"));
  Dims dims{};
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const auto* value = find(items, kDimNames[i]);
    const auto name = std::string(kDimNames[i]);
    if (value == nullptr) return unexpected(ErrorCode::bad_checkpoint, "dims has no " + name);
    const auto& node = archive.pickle()[*value];
    if (node.kind != PickleKind::integer || node.integer < 0) {
      return unexpected(ErrorCode::bad_checkpoint, "dims has no whole number as " + name);
    }
    dims[i] = node.integer;
  }
  return dims;
}

Result<Checkpoint> read_archive(const FileBytes& file) {
  auto archive = TRY(TorchArchive::open(file));
  const auto top = TRY(archive.items(archive.pickle().root(), "the checkpoint"));
  const auto* dims = find(top, "dims");
  const auto* state = find(top, "model_state_dict");
  if (dims == nullptr || state == nullptr) return refuse_other(top);
  Checkpoint checkpoint;
  checkpoint.container = "openai";
  checkpoint.path = file.path;
  checkpoint.files.push_back(file.path);
  checkpoint.documents["dims"] = dims_json(TRY(read_dims(archive, *dims)));
  for (const auto& [name, id] : TRY(archive.items(*state, "model_state_dict"))) {
    checkpoint.tensors.tensors.emplace(name, TRY(archive.tensor(id, name)));
  }
  checkpoint.tensors.owners = archive.owners();
  if (file.owner != nullptr) checkpoint.tensors.mapped.push_back(file.owner);
  return checkpoint;
}

}  // namespace

int detect_openai(const fs::path& path) {
  const auto head = first_bytes(path, 16);
  if (head.starts_with("PK\3\4")) return kByLayout;
  return looks_like_legacy_torch(std::as_bytes(std::span(head.data(), head.size()))) ? kByLayout
                                                                                     : kNotThis;
}

Result<Checkpoint> read_openai(const FileBytes& file) { return located(read_archive(file), file.where()); }

Result<Checkpoint> read_openai(const fs::path& path) {
  return read_openai(TRY(FileBytes::map(path)));
}

}  // namespace oasr
