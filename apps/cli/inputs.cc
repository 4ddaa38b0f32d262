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
  Input input;
  input.id = text("id");
  const fs::path path(audio);
  input.audio = path.is_absolute() ? audio : (folder / path).string();
  input.stem = input.id.empty() ? safe_stem(path.stem().string()) : safe_stem(input.id);
  return input;
}

Status add_manifest(const std::string& manifest, std::vector<Input>& inputs) {
  std::ifstream file(manifest);
  if (!file) return unexpected(ErrorCode::not_found, "can not read the manifest", manifest);
  const auto folder = fs::path(manifest).parent_path();
  std::set<std::string> ids;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto where = manifest + ":" + std::to_string(number);
    auto input = manifest_input(line, folder, where);
    if (!input) return unexpected(input.error());
    if (!input->id.empty() && !ids.insert(input->id).second) {
      return usage("the id '" + input->id + "' is there twice", where);
    }
    inputs.push_back(std::move(*input));
  }
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
  for (const auto& path : spec.paths) {
    std::error_code failed;
    if (path == "-") {
      if (std::exchange(has_stdin, true)) return usage("standard input can be read once", "-");
      inputs.push_back({{}, "-", "stdin"});
    } else if (fs::is_directory(path, failed)) {
      if (!spec.recursive) return usage("is a folder", path, "add --recursive");
      if (auto added = add_folder(path, inputs); !added) return unexpected(added.error());
    } else {
      inputs.push_back(file_input(path, {}));
    }
  }
  if (!spec.manifest.empty()) {
    if (auto added = add_manifest(spec.manifest, inputs); !added) return unexpected(added.error());
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
