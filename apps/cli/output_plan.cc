#include "cli/output_plan.h"

#include <algorithm>
#include <filesystem>
#include <map>

namespace oasr::cli {
namespace {

namespace fs = std::filesystem;

Unexpected usage(std::string what, std::string where, std::string remedy) {
  return unexpected(ErrorCode::invalid_argument, std::move(what), std::move(where),
                    std::move(remedy));
}

Status check_spec(const OutputSpec& spec, std::size_t inputs) {
  if (!spec.file.empty() && (inputs > 1 || !spec.folder.empty())) {
    return usage("names the files of one input", "--output-file", "use --output-dir");
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

// "talks/monday" + ".wav"
std::string full_name(const Input& input) {
  return input.stem + fs::path(input.audio).extension().string();
}

}  // namespace

Result<OutputPlan> OutputPlan::make(const OutputSpec& spec, const std::vector<Input>& inputs) {
  if (auto good = check_spec(spec, inputs.size()); !good) return unexpected(good.error());
  OutputPlan plan(spec);
  if (spec.folder.empty()) return plan;
  std::map<std::string, std::vector<const Input*>> by_stem;
  for (const auto& input : inputs) by_stem[input.stem].push_back(&input);
  std::map<std::string, const Input*> taken;
  for (const auto& [stem, same] : by_stem) {
    if (same.size() > 1) plan.full_names_.push_back(stem);
    for (const auto* input : same) {
      const auto name = same.size() > 1 ? full_name(*input) : stem;
      const auto [other, fresh] = taken.emplace(name, input);
      if (!fresh) {
        return usage("would be written to the same file as " + other->second->audio, input->audio,
                     "transcribe them into different folders, or give ids in a --manifest");
      }
    }
  }
  return plan;
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
