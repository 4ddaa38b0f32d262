#include "cli/eval_run.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/signals.h"
#include "oasr/outputs.h"
#include "oasr/version.h"

namespace oasr::cli {
namespace {

namespace fs = std::filesystem;

double peak_mib() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// Size and time of a checkpoint's files: another one at the same path is seen.
nlohmann::ordered_json files_json(const std::string& model) {
  std::uintmax_t bytes = 0;
  std::int64_t newest = 0;
  const auto add = [&](const fs::path& path) {
    std::error_code failed;
    if (!fs::is_regular_file(path, failed)) return;
    const auto size = fs::file_size(path, failed);
    if (!failed) bytes += size;
    const auto time = fs::last_write_time(path, failed).time_since_epoch();
    if (!failed)
      newest = std::max<std::int64_t>(
          newest, std::chrono::duration_cast<std::chrono::seconds>(time).count());
  };
  std::error_code failed;
  add(model);
  for (fs::directory_iterator item(model, failed), end; !failed && item != end;
       item.increment(failed)) {
    add(item->path());
  }
  return {{"bytes", bytes}, {"newest", newest}};
}

std::string stripped(const std::string& text) {
  const auto first = text.find_first_not_of(" \n");
  return first == std::string::npos ? std::string()
                                    : text.substr(first, text.find_last_not_of(" \n") + 1 - first);
}

}  // namespace

std::string eval_configuration(const EvalArguments& arguments, const Recognizer& recognizer) {
  const auto& t = arguments.transcribe;
  // Every decoding option, as results of `oasr transcribe` have them.
  const auto line = format_json_line({}, {{}, {}, {}, &t.options});
  auto decoding = nlohmann::ordered_json::parse(line, nullptr, false)["options"];
  auto model = nlohmann::ordered_json::parse(recognizer.report(), nullptr, false);
  const auto files = files_json(model.value("model", ""));
  nlohmann::ordered_json json = {{"oasr", version()},
                                 {"model", std::move(model)},
                                 {"files", files},
                                 {"quantization", t.engine.quantization},
                                 {"quantization_options", t.engine.quantization_options},
                                 {"decoding", std::move(decoding)}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The entries of the journal for utterances that are asked for; what failed is tried again.
Status EvalRun::take_over() {
  if (journal_ == nullptr) return {};
  std::map<Key, const EvalInput*> rows;
  for (const auto& row : inputs_.rows) rows.emplace(Key(row.utterance.set, row.utterance.id), &row);
  for (const auto& entry : journal_->done()) {
    const auto found = rows.find(Key(entry.set, entry.id));
    if (found == rows.end()) continue;
    if (found->second->utterance.audio != entry.audio) {
      return unexpected(ErrorCode::invalid_argument,
                        fmt::format("'{}' was {} when the partial result was made, and is {} now",
                                    entry.id, entry.audio, found->second->utterance.audio),
                        found->second->where, "--restart starts again");
    }
    if (entry.failure.empty()) done_[found->first] = entry;
  }
  if (!done_.empty()) {
    terminal_.note(
        fmt::format("going on: {} of {} utterances are done", done_.size(), inputs_.rows.size()));
  }
  return {};
}

Status EvalRun::run(Recognizer& recognizer) {
  if (auto good = take_over(); !good) return good;
  std::vector<AudioInput> audios;
  std::vector<const EvalInput*> rows;
  for (const auto& row : inputs_.rows) {
    if (done_.count(Key(row.utterance.set, row.utterance.id)) > 0) continue;
    auto audio = arguments_.transcribe.audio;
    audio.path = row.utterance.audio;
    audios.push_back(std::move(audio));
    rows.push_back(&row);
  }
  finished_ = done_.size();
  last_ = std::chrono::steady_clock::now();
  Callbacks callbacks;
  callbacks.cancelled = [this] { return interrupted() || write_failed_; };
  callbacks.progress = [this](double, double) {
    terminal_.progress("utterances", static_cast<double>(finished_),
                       static_cast<double>(inputs_.rows.size()), "");
  };
  recognizer.transcribe_batch(
      audios, arguments_.transcribe.options,
      [&](std::size_t index, Result<Transcript> result) { finish(*rows[index], result); },
      callbacks);
  terminal_.clear_progress();
  if (!written_) return written_;
  if (interrupted() && finished_ < inputs_.rows.size()) {
    return unexpected(
        ErrorCode::cancelled,
        fmt::format("stopped: {} of {} utterances are done", finished_, inputs_.rows.size()), {},
        journal_ != nullptr ? "the same command goes on from there"
                            : "with --output the same command would go on from there");
  }
  return {};
}

void EvalRun::finish(const EvalInput& row, const Result<Transcript>& result) {
  if (!result && (result.error().code == ErrorCode::cancelled || interrupted())) return;
  const auto now = std::chrono::steady_clock::now();
  EvalJournal::Entry entry;
  entry.set = row.utterance.set;
  entry.id = row.utterance.id;
  entry.audio = row.utterance.audio;
  entry.wall = std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  entry.peak_mib = peak_mib();
  if (result) {
    entry.hypothesis = stripped(result->text);
    entry.seconds = result->duration;
    for (const auto& warning : result->warnings) entry.warnings.push_back(warning.message);
    if (const auto note = duration_note(row, result->duration)) entry.warnings.push_back(*note);
  } else {
    entry.failure = result.error().message();
    auto error = result.error();
    if (error.where.empty()) error.where = row.where;
    terminal_.error(error);
  }
  terminal_.detail(row.utterance.id + ": " + entry.hypothesis);
  if (journal_ != nullptr) written_ = journal_->append(entry);
  write_failed_ = !written_;
  ++finished_;
  done_[Key(entry.set, entry.id)] = std::move(entry);
}

std::vector<EvalUtterance> EvalRun::utterances(EvalReport& report) const {
  std::vector<EvalUtterance> utterances;
  for (const auto& row : inputs_.rows) {
    auto utterance = row.utterance;
    const auto found = done_.find(Key(utterance.set, utterance.id));
    if (found != done_.end()) {
      const auto& entry = found->second;
      utterance.hypothesis = entry.hypothesis;
      utterance.failure = entry.failure;
      if (entry.seconds > 0) utterance.seconds = entry.seconds;
      report.audio_seconds += entry.seconds;
      report.wall_seconds += entry.wall;
      report.peak_mib = std::max(report.peak_mib, entry.peak_mib);
      for (const auto& warning : entry.warnings)
        report.notes.push_back(utterance.id + ": " + warning);
    }
    utterances.push_back(std::move(utterance));
  }
  return utterances;
}

}  // namespace oasr::cli
