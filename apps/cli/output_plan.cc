#include "cli/output_plan.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

namespace oasr::cli {
namespace {

namespace fs = std::filesystem;

Unexpected usage(std::string what, std::string where, std::string remedy) {
  return unexpected(ErrorCode::invalid_argument, std::move(what), std::move(where),
                    std::move(remedy));
}

Status check_spec(const OutputSpec& spec, std::size_t inputs) {
  if (!spec.file.empty() && (inputs > 1 || !spec.folder.empty())) {
    return spec.folder.empty()
               ? usage("names the files of one input, and there are " + std::to_string(inputs),
                       "--output-file", "use --output-dir")
               : usage("does not go with --output-dir", "--output-file", "leave one of them out");
  }
  if (!spec.folder.empty() || !spec.file.empty()) return {};
  if (spec.formats.size() > 1) {
    return usage("several formats do not fit on standard output", "--output-format",
                 "add --output-dir DIR");
  }
  const auto format = spec.formats.front();
  if (inputs > 1 && format != OutputFormat::txt && format != OutputFormat::json) {
    return usage("the " + std::string(output_format_name(format)) +
                     " of several inputs does not fit on standard output",
                 "--output-format", "add --output-dir DIR");
  }
  return {};
}

constexpr std::size_t kLongestName = 255;  // of a file, bytes
constexpr std::size_t kTemporaryName = 8;  // ".NAME.XXXXXX"

Unexpected cannot_write(std::string what, std::string where) {
  return unexpected(ErrorCode::io, std::move(what), std::move(where),
                    "choose another --output-dir or --output-file");
}

// Permissions alone do not tell: a disk may be read-only.
Status check_folder(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  auto probe = (folder / ".oasr.XXXXXX").string();
  const int file = failed ? -1 : ::mkostemp(probe.data(), O_CLOEXEC);
  if (file < 0) {
    const auto reason = failed ? failed.message() : std::generic_category().message(errno);
    return cannot_write("can not write into the folder: " + reason, folder.string());
  }
  ::close(file);
  ::unlink(probe.c_str());
  return {};
}

// "talks/monday" + ".wav"
std::string full_name(const Input& input) {
  return input.stem + fs::path(input.audio).extension().string();
}

}  // namespace

Result<OutputPlan> OutputPlan::make(const OutputSpec& spec, const std::vector<Input>& inputs) {
  if (auto good = check_spec(spec, inputs.size()); !good) return unexpected(good.error());
  OutputPlan plan(spec);
  // NAME.srt in the format srt is NAME.srt, not NAME.srt.srt.
  const auto extension = fs::path(spec.file).extension().string();
  for (const auto format : spec.formats) {
    if (extension == "." + std::string(output_format_name(format))) {
      plan.spec_.file.resize(spec.file.size() - extension.size());
      break;
    }
  }
  if (auto named = plan.name_outputs(inputs); !named) return unexpected(named.error());
  if (auto good = plan.check_overwriting(inputs); !good) return unexpected(good.error());
  return plan;
}

Status OutputPlan::name_outputs(const std::vector<Input>& inputs) {
  if (spec_.folder.empty()) return {};
  std::map<std::string, std::vector<const Input*>> by_stem;
  for (const auto& input : inputs) by_stem[input.stem].push_back(&input);
  std::map<std::string, const Input*> taken;
  for (const auto& [stem, same] : by_stem) {
    if (same.size() > 1) full_names_.push_back(stem);
    for (const auto* input : same) {
      const auto name = same.size() > 1 ? full_name(*input) : stem;
      const auto [other, fresh] = taken.emplace(name, input);
      if (!fresh) {
        return usage("would be written to the same file as " + other->second->audio, input->audio,
                     "transcribe them into different folders, or give ids in a --manifest");
      }
    }
  }
  return {};
}

// By device and inode: other spellings of a path and links are the same file.
Status OutputPlan::check_overwriting(const std::vector<Input>& inputs) const {
  if (to_stdout()) return {};
  const auto identity = [](const std::string& path) -> std::optional<std::pair<dev_t, ino_t>> {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) return std::nullopt;
    return std::pair(info.st_dev, info.st_ino);
  };
  std::set<std::pair<dev_t, ino_t>> recordings;
  for (const auto& input : inputs) {
    if (const auto file = identity(input.audio)) recordings.insert(*file);
  }
  for (const auto& input : inputs) {
    for (const auto format : spec_.formats) {
      const auto target = path(input, format);
      const auto file = identity(target);
      if (file && recordings.count(*file) > 0) {
        return usage("is an input, and the output would overwrite it", target,
                     "choose another --output-dir or --output-file");
      }
    }
  }
  return {};
}

std::string OutputPlan::path(const Input& input, OutputFormat format) const {
  const auto extension = "." + std::string(output_format_name(format));
  if (!spec_.file.empty()) return spec_.file + extension;
  const bool full = std::binary_search(full_names_.begin(), full_names_.end(), input.stem);
  return (fs::path(spec_.folder) / ((full ? full_name(input) : input.stem) + extension)).string();
}

bool OutputPlan::done(const Input& input) const {
  return std::all_of(spec_.formats.begin(), spec_.formats.end(), [&](OutputFormat format) {
    std::error_code failed;
    return fs::is_regular_file(path(input, format), failed);
  });
}

Status OutputPlan::check_writable(const std::vector<Input>& inputs) const {
  if (to_stdout()) return {};
  const auto above = fs::path(spec_.file).parent_path();
  const fs::path folder = !spec_.folder.empty() ? fs::path(spec_.folder) : above.empty() ? "." : above;
  if (auto good = check_folder(folder); !good) return good;
  for (const auto& input : inputs) {
    for (const auto format : spec_.formats) {
      const auto target = path(input, format);
      std::error_code failed;
      const auto status = fs::status(target, failed);
      if (fs::is_directory(status)) return cannot_write("a folder has this name", target);
      // The file is written under a longer name first.
      if (fs::path(target).filename().string().size() + kTemporaryName > kLongestName) {
        return cannot_write("the file's name is too long", target);
      }
    }
  }
  return {};
}

Status OutputPlan::write(const Input& input, const Transcript& transcript,
                         const OutputContext& context) const {
  for (const auto format : spec_.formats) {
    auto written =
        write_output_file(path(input, format), format_transcript(transcript, format, context));
    if (!written) return written;
  }
  return {};
}

Result<std::vector<OutputFormat>> parse_output_formats(const std::vector<std::string>& words) {
  std::vector<OutputFormat> formats;
  const auto add = [&](OutputFormat format) {
    if (std::find(formats.begin(), formats.end(), format) == formats.end()) {
      formats.push_back(format);
    }
  };
  for (const auto& word : words) {
    if (word == "all") {
      for (const auto format : output_formats()) add(format);
    } else if (const auto format = parse_output_format(word)) {
      add(*format);
    } else {
      return usage("'" + word + "' is not a format", "--output-format",
                   "use txt, json, srt, vtt, tsv, lrc or all");
    }
  }
  return formats;
}

}  // namespace oasr::cli
