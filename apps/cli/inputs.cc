#include "cli/inputs.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace oasr::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAudioExtensions[] = {
    "3gp", "aac", "ac3", "aif",  "aiff", "amr", "ape", "au",  "avi", "caf", "flac", "flv",
    "m4a", "m4b", "m4v", "mka",  "mkv",  "mov", "mp1", "mp2", "mp3", "mp4", "mpeg", "mpg",
    "mpga", "oga", "ogg", "ogv", "opus", "sph", "ts",  "wav", "weba", "webm", "wma", "wmv", "wv"};

constexpr std::size_t kLongestLine = std::size_t{1} << 20;  // of a manifest, bytes

Unexpected usage(std::string what, std::string where, std::string remedy = {}) {
  return unexpected(ErrorCode::invalid_argument, std::move(what), std::move(where),
                    std::move(remedy));
}

// The name of output files below the output folder: never outside it.
std::string safe_stem(std::string text) {
  for (char& c : text) {
    if (c == '/' || c == '\0') c = '_';
  }
  return text == "." || text == ".." || text.empty() ? "_" : text;
}

Input file_input(const fs::path& path, const fs::path& root) {
  Input input;
  input.audio = path.string();
  const auto relative = root.empty() ? path.filename() : path.lexically_relative(root);
  input.stem = (relative.parent_path() / relative.stem()).string();
  return input;
}

Status add_folder(const fs::path& folder, std::vector<Input>& inputs) {
  std::vector<fs::path> files;
  std::error_code failed;
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator item(folder, options, failed), end; item != end;
       item.increment(failed)) {
    std::error_code unreadable;
    if (is_audio_name(item->path().filename().string()) && item->is_regular_file(unreadable)) {
      files.push_back(item->path());
    }
  }
  if (failed) return unexpected(ErrorCode::io, failed.message(), folder.string());
  std::sort(files.begin(), files.end());
  for (const auto& file : files) inputs.push_back(file_input(file, folder));
  return {};
}

// Text, or a whole number as its digits; empty without one.
Result<std::string> manifest_id(const nlohmann::json& json, const std::string& where) {
  const auto id = json.find("id");
  if (id == json.end()) return std::string();
  if (id->is_string()) return id->get<std::string>();
  if (id->is_number_integer()) return id->dump();
  return usage(std::string("\"id\" is neither text nor a whole number but ") + id->type_name(), where);
}

Result<Input> manifest_input(const std::string& line, const fs::path& folder,
                             const std::string& where) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return usage("is not a JSON object", where);
  const auto text = [&](const char* key) -> std::string {
    const auto value = json.find(key);
    return value != json.end() && value->is_string() ? value->get<std::string>() : std::string();
  };
  auto audio = text("audio");
  if (audio.empty()) audio = text("audio_filepath");
  if (audio.empty()) return usage("has no text \"audio\"", where);
  auto id = manifest_id(json, where);
  if (!id) return unexpected(id.error());
  Input input;
  input.id = std::move(*id);
  const fs::path path(audio);
  input.audio = path.is_absolute() ? audio : (folder / path).string();
  input.stem = input.id.empty() ? safe_stem(path.stem().string()) : safe_stem(input.id);
  return input;
}

// A manifest is a file or a pipe: a folder has no lines, and a device may never end.
Status check_manifest(const std::string& manifest) {
  std::error_code failed;
  const auto status = fs::status(manifest, failed);
  if (!fs::exists(status)) {
    return unexpected(ErrorCode::not_found, "can not read the manifest: " + failed.message(), manifest);
  }
  if (fs::is_directory(status)) return usage("is a folder, not a manifest", manifest);
  if (fs::is_regular_file(status) || fs::is_fifo(status)) return {};
  return usage("is a device, not a manifest", manifest);
}

Status add_manifest(const std::string& manifest, std::vector<Input>& inputs) {
  if (auto good = check_manifest(manifest); !good) return good;
  std::ifstream file(manifest);
  if (!file) return unexpected(ErrorCode::io, "can not read the manifest", manifest);
  const auto folder = fs::path(manifest).parent_path();
  std::set<std::string> ids;
  std::vector<char> buffer(kLongestLine + 1);
  std::string where;
  int number = 0;
  while (file.getline(buffer.data(), static_cast<std::streamsize>(buffer.size()))) {
    where = manifest + ":" + std::to_string(++number);
    const auto read = static_cast<std::size_t>(file.gcount());
    const std::string line(buffer.data(), file.eof() ? read : read - 1);  // without its end
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    auto input = manifest_input(line, folder, where);
    if (!input) return unexpected(input.error());
    if (!input->id.empty() && !ids.insert(input->id).second) {
      return usage("the id '" + input->id + "' is there twice", where);
    }
    inputs.push_back(std::move(*input));
  }
  where = manifest + ":" + std::to_string(number + 1);
  if (file.bad()) return unexpected(ErrorCode::io, "can not read the manifest further", where);
  if (!file.eof()) return usage("the line is longer than 1 MiB", where);
  return {};
}

std::optional<std::size_t> parse_number(std::string_view text) {
  std::size_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

bool is_audio_name(std::string_view name) {
  const auto dot = name.rfind('.');
  if (dot == std::string_view::npos || name.front() == '.') return false;
  std::string extension(name.substr(dot + 1));
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(std::begin(kAudioExtensions), std::end(kAudioExtensions), extension) !=
         std::end(kAudioExtensions);
}

Result<std::vector<Input>> collect_inputs(const InputSpec& spec) {
  std::vector<Input> inputs;
  bool has_stdin = false;
  std::string folders;
  for (const auto& path : spec.paths) {
    std::error_code failed;
    if (path == "-") {
      if (std::exchange(has_stdin, true)) return usage("standard input can be read once", "-");
      inputs.push_back({{}, "-", "stdin"});
    } else if (fs::is_directory(path, failed)) {
      if (!spec.recursive) return usage("is a folder", path, "add --recursive");
      if (auto added = add_folder(path, inputs); !added) return unexpected(added.error());
      folders += (folders.empty() ? "" : ", ") + path;
    } else {
      inputs.push_back(file_input(path, {}));
    }
  }
  if (!spec.manifest.empty()) {
    if (auto added = add_manifest(spec.manifest, inputs); !added) return unexpected(added.error());
  }
  if (inputs.empty() && !folders.empty()) {
    return usage("there is no audio file below the folder", folders);
  }
  if (inputs.empty()) {
    return usage("there is nothing to transcribe", {},
                 "give audio files, a folder with --recursive, a --manifest, or - for standard input");
  }
  return inputs;
}

Result<Shard> parse_shard(std::string_view text) {
  const auto slash = text.find('/');
  if (slash != std::string_view::npos) {
    const auto index = parse_number(text.substr(0, slash));
    const auto count = parse_number(text.substr(slash + 1));
    if (index && count && *index >= 1 && *index <= *count) return Shard{*index, *count};
  }
  return usage("is not a shard", std::string(text), "write i/N with i from 1 to N, as in 2/8");
}

std::vector<Input> shard_of(const std::vector<Input>& inputs, Shard shard) {
  std::vector<Input> part;
  for (std::size_t i = shard.index - 1; i < inputs.size(); i += shard.count) {
    part.push_back(inputs[i]);
  }
  return part;
}

}  // namespace oasr::cli
