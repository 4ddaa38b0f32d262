#include "api/package_source.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "api/digest.h"
#include "api/model_cache.h"
#include "base/fs.h"
#include "checkpoint/zip.h"

namespace oasr {
namespace {

constexpr auto kChildPoll = std::chrono::milliseconds(50);
constexpr std::uint64_t kLargestMember = std::uint64_t{4} << 30;

// Programs that are pip, in the order to try.
const std::vector<std::vector<std::string>> kPip = {{"python3", "-m", "pip"}, {"pip3"}, {"pip"}};

std::string last_line(const fs::path& log) {
  std::ifstream file(log);
  std::string line, last;
  while (std::getline(file, line)) {
    if (!line.empty()) last = line;
  }
  return last;
}

// Runs a program with its output in `log`; in a process group of its own, so that a Ctrl-C in the
// terminal reaches us first.
Status run_program(const std::vector<std::string>& words, const fs::path& log,
                   const std::function<bool()>& cancelled) {
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) {
    return unexpected(ErrorCode::network, words[0] + ": " + std::strerror(failed));
  }
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (cancelled && cancelled()) {
      ::kill(-child, SIGTERM);
      ::waitpid(child, &status, 0);
      return unexpected(ErrorCode::cancelled, "stopped");
    }
    std::this_thread::sleep_for(kChildPoll);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  auto line = last_line(log);
  return unexpected(ErrorCode::network, words[0] + ": " + (line.empty() ? "it failed" : line));
}

// The downloaded archive of a package, or an empty path.
fs::path find_archive(const fs::path& folder, const SourcePackage& package) {
  auto prefix = package.name + "-" + package.version + "-";
  std::replace(prefix.begin(), prefix.begin() + static_cast<std::ptrdiff_t>(package.name.size()),
               '-', '_');
  std::error_code ignored;
  for (const auto& item : fs::directory_iterator(folder, ignored)) {
    const auto name = item.path().filename().string();
    if (name.rfind(prefix, 0) == 0 && item.path().extension() == ".whl") return item.path();
  }
  return {};
}

Result<fs::path> fetch_archive(const PackageRequest& request, const SourcePackage& package) {
  const auto folder = request.folder / "archives";
  TRY(make_folders(folder));
  if (auto there = find_archive(folder, package); !there.empty()) {
    if (check_digest(there, package.digest, request.cancelled)) return there;
    std::error_code ignored;
    fs::remove(there, ignored);
  }
  const auto wanted = package.name + "==" + package.version;
  if (request.notice) request.notice("pip download " + wanted);
  Unexpected failure = unexpected(ErrorCode::network, "no pip");
  std::string reasons;
  for (auto words : kPip) {
    for (const char* word : {"download", "--quiet", "--no-input", "--no-deps", "--only-binary=:all:",
                             "--disable-pip-version-check", "--dest"}) {
      words.push_back(word);
    }
    words.push_back(folder.string());
    words.push_back(wanted);
    auto ran = run_program(words, request.folder / "pip.log", request.cancelled);
    if (ran) {
      auto archive = find_archive(folder, package);
      if (archive.empty()) return unexpected(ErrorCode::network, "pip gave no archive of " + wanted);
      TRY(check_digest(archive, package.digest, request.cancelled));
      return archive;
    }
    if (ran.error().code == ErrorCode::cancelled) return unexpected(ran.error());
    reasons += (reasons.empty() ? "" : "; ") + ran.error().what;
  }
  return unexpected(ErrorCode::network, reasons, wanted);
}

using Archive = std::pair<std::shared_ptr<const MappedFile>, ZipArchive>;

Status extract_file(const PackageRequest& request, const SourceFile& file,
                    const std::vector<Archive>& archives) {
  const auto path = request.folder / file.name;
  auto out = TRY(AtomicFile::create(path));
  for (const auto& member : file.members) {
    const auto holder =
        std::find_if(archives.begin(), archives.end(),
                     [&](const Archive& archive) { return archive.second.find(member) != nullptr; });
    if (holder == archives.end()) {
      return unexpected(ErrorCode::io, "no package holds '" + member + "'", path.string());
    }
    TRY(holder->second.extract(*holder->second.find(member), kLargestMember,
                               [&](std::span<const std::byte> piece) { return out.write(piece); }));
    if (request.cancelled && request.cancelled()) return unexpected(ErrorCode::cancelled, "stopped");
  }
  TRY(out.commit());
  auto good = check_digest(path, file.digest, request.cancelled);
  std::error_code ignored;
  if (!good) fs::remove(path, ignored);
  return good;
}

}  // namespace

Status fetch_packages(const PackageRequest& request) {
  std::vector<Archive> archives;
  for (const auto& package : request.source.packages) {
    const auto path = TRY(fetch_archive(request, package));
    auto bytes = TRY(MappedFile::open(path));
    auto archive = TRY(ZipArchive::open(bytes->bytes(), path.string()));
    archives.emplace_back(std::move(bytes), std::move(archive));
  }
  for (const auto& file : request.source.files) TRY(extract_file(request, file, archives));
  std::error_code ignored;
  fs::remove_all(request.folder / "archives", ignored);
  fs::remove(request.folder / "pip.log", ignored);
  return {};
}

}  // namespace oasr
