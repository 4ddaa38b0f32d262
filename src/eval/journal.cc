#include "eval/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "base/fs.h"

namespace oasr {
namespace eval {
namespace {

constexpr std::string_view kPartialFormat = "oasr-eval-partial";
constexpr int kPartialVersion = 1;

OrderedJson head_json(const Json& configuration) {
  return {{"format", kPartialFormat}, {"version", kPartialVersion}, {"configuration", configuration}};
}

OrderedJson entry_json(const EvalJournal::Entry& entry) {
  OrderedJson row = {{"set", entry.set},
                     {"id", entry.id},
                     {"audio", entry.audio},
                     {"hypothesis", entry.hypothesis}};
  if (!entry.failure.empty()) row["failure"] = entry.failure;
  row["seconds"] = entry.seconds;
  row["wall"] = entry.wall;
  row["peak_mib"] = entry.peak_mib;
  if (!entry.warnings.empty()) row["warnings"] = entry.warnings;
  return row;
}

bool read_entry(const Json& row, EvalJournal::Entry& entry) {
  if (!row.is_object()) return false;
  for (const auto& [key, target] : {std::pair<const char*, std::string*>{"set", &entry.set},
                                    {"id", &entry.id},
                                    {"audio", &entry.audio},
                                    {"hypothesis", &entry.hypothesis},
                                    {"failure", &entry.failure}}) {
    const auto found = row.find(key);
    if (found == row.end() && target == &entry.failure) continue;
    if (found == row.end() || !found->is_string()) return false;
    *target = found->get<std::string>();
  }
  for (const auto& [key, target] : {std::pair<const char*, double*>{"seconds", &entry.seconds},
                                    {"wall", &entry.wall},
                                    {"peak_mib", &entry.peak_mib}}) {
    const auto found = row.find(key);
    if (found == row.end() || !found->is_number()) return false;
    *target = found->get<double>();
  }
  const auto warnings = row.find("warnings");
  if (warnings == row.end()) return true;
  if (!warnings->is_array()) return false;
  for (const auto& warning : *warnings) {
    if (!warning.is_string()) return false;
    entry.warnings.push_back(warning.get<std::string>());
  }
  return true;
}

Unexpected broken(std::size_t line, const std::string& path) {
  return unexpected(ErrorCode::invalid_argument,
                    line == 1 ? std::string("is not a partial result of oasr eval")
                              : fmt::format("line {} is damaged", line),
                    path, "--restart starts again");
}

void find_differences(const Json& there, const Json& now, const std::string& place,
                      std::string& text) {
  if (there == now) return;
  if (there.is_object() && now.is_object()) {
    auto all = there;
    all.update(now);
    for (const auto& [key, unused] : all.items()) {
      const auto name = place.empty() ? key : place + "." + key;
      find_differences(there.value(key, Json()), now.value(key, Json()), name, text);
    }
    return;
  }
  text += fmt::format("{}{}: {} there, {} now", text.empty() ? "" : "; ", place, dump_json(there),
                      dump_json(now));
}

}  // namespace

std::string differences(const Json& there, const Json& now) {
  std::string text;
  find_differences(there, now, {}, text);
  return text;
}

Result<JournalText> parse_journal(std::string_view text, const std::string& path) {
  JournalText journal;
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  for (std::size_t line = 1; journal.whole < text.size(); ++line) {
    const auto end = text.find('\n', journal.whole);
    if (end == std::string_view::npos) break;  // the program ended while it wrote
    const auto json = parse_json(text.substr(journal.whole, end - journal.whole), path);
    if (!json || !json->is_object()) return broken(line, path);
    if (line == 1) {
      const auto configuration = json->find("configuration");
      if (json->value("format", Json()) != kPartialFormat || json->value("version", Json()) != kPartialVersion ||
          configuration == json->end() || !configuration->is_object()) {
        return broken(line, path);
      }
      journal.configuration = *configuration;
    } else {
      EvalJournal::Entry entry;
      if (!read_entry(*json, entry)) return broken(line, path);
      const auto [place, is_new] =
          places.emplace(std::pair(entry.set, entry.id), journal.entries.size());
      if (is_new) {
        journal.entries.push_back(std::move(entry));
      } else {
        journal.entries[place->second] = std::move(entry);
      }
    }
    journal.whole = end + 1;
  }
  return journal;
}

}  // namespace eval

struct EvalJournal::Impl {
  std::string path;
  int file = -1;
  std::vector<Entry> done;

  ~Impl() {
    if (file >= 0) ::close(file);
  }

  Unexpected failed(const char* what) const {
    return unexpected(ErrorCode::io, fmt::format("{}: {}", what, std::strerror(errno)), path);
  }

  Status write_line(const OrderedJson& json) const {
    const auto line = dump_json(json) + "\n";
    for (std::size_t at = 0; at < line.size();) {
      const auto written = ::write(file, line.data() + at, line.size() - at);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return failed("can not be written");
      at += static_cast<std::size_t>(written);
    }
    return {};
  }
};

EvalJournal::EvalJournal(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EvalJournal::~EvalJournal() = default;
EvalJournal::EvalJournal(EvalJournal&&) noexcept = default;
EvalJournal& EvalJournal::operator=(EvalJournal&&) noexcept = default;

Result<EvalJournal> EvalJournal::open(const std::string& path, const std::string& configuration) {
  const auto now = TRY(parse_json(configuration, "configuration"));
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->file = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (impl->file < 0) return impl->failed("can not be opened");
  if (::flock(impl->file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return impl->failed("can not be locked");
    return unexpected(ErrorCode::io, "another evaluation writes this file", path);
  }
  const auto text = TRY(read_text_file(path, std::size_t{1} << 30));
  auto journal = TRY(eval::parse_journal(text, path));
  if (journal.whole == 0) {
    if (!text.empty() && !text.starts_with('{')) return eval::broken(1, path);
    if (::ftruncate(impl->file, 0) != 0) return impl->failed("can not be written");
    TRY(impl->write_line(eval::head_json(now)));
    return EvalJournal(std::move(impl));
  }
  if (const auto changed = eval::differences(journal.configuration, now); !changed.empty()) {
    return unexpected(ErrorCode::invalid_argument,
                      "holds the beginning of an evaluation that was set up otherwise: " + changed,
                      path, "set it up alike to go on with it, or --restart");
  }
  const auto whole = static_cast<off_t>(journal.whole);
  if (::ftruncate(impl->file, whole) != 0) return impl->failed("can not be written");
  impl->done = std::move(journal.entries);
  return EvalJournal(std::move(impl));
}

const std::vector<EvalJournal::Entry>& EvalJournal::done() const { return impl_->done; }

Status EvalJournal::append(const Entry& entry) {
  return impl_->write_line(eval::entry_json(entry));
}

Status EvalJournal::remove() {
  if (::unlink(impl_->path.c_str()) != 0) return impl_->failed("can not be removed");
  return {};
}

}  // namespace oasr
