#include "api/model_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "api/digest.h"
#include "base/env.h"
#include "base/fs.h"
#include "base/json.h"

namespace oasr {
namespace {

constexpr std::string_view kManifest = "oasr.json";
constexpr auto kLockPoll = std::chrono::milliseconds(100);

Result<Json> read_manifest(const fs::path& folder) {
  const auto path = folder / kManifest;
  const auto text = TRY(read_text_file(path, 1 << 20));
  auto json = TRY(parse_json(text, path.string()));
  const bool good = json.is_object() && json.contains("checkpoint") &&
                    json["checkpoint"].is_string() && json.contains("files") &&
                    json["files"].is_array();
  if (!good) return unexpected(ErrorCode::io, "is not a manifest of oasr", path.string());
  for (const auto& file : json["files"]) {
    if (!file.is_object() || !file.contains("name") || !file["name"].is_string() ||
        !file.contains("bytes") || !file["bytes"].is_number_unsigned() ||
        !file.contains("sha256") || !file["sha256"].is_string()) {
      return unexpected(ErrorCode::io, "is not a manifest of oasr", path.string());
    }
  }
  return json;
}

// The bytes must be on the disk before the rename that declares them complete.
Status flush_file(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool done = file >= 0 && ::fsync(file) == 0;
  const int code = errno;
  if (file >= 0) ::close(file);
  if (done) return {};
  return unexpected(ErrorCode::io, std::string("can not flush the file: ") + std::strerror(code),
                    path.string());
}

}  // namespace

Status make_folders(const fs::path& path) {
  std::error_code failed;
  fs::create_directories(path, failed);
  if (!failed) return {};
  return unexpected(ErrorCode::io, "can not create the folder: " + failed.message(), path.string());
}

ModelCache ModelCache::of_user() {
  if (const auto given = env("OASR_CACHE_DIR")) return ModelCache(*given);
  if (const auto base = env("XDG_CACHE_HOME")) return ModelCache(fs::path(*base) / "oasr");
  return ModelCache(fs::path(env("HOME").value_or("/tmp")) / ".cache" / "oasr");
}

fs::path ModelCache::folder(std::string_view model) const { return root_ / "models" / model; }

fs::path ModelCache::staging(std::string_view model, std::string_view source) const {
  return root_ / "partial" / model / source;
}

std::optional<fs::path> ModelCache::find(std::string_view model) const {
  const auto place = folder(model);
  const auto manifest = read_manifest(place);
  if (!manifest) return std::nullopt;
  for (const auto& file : (*manifest)["files"]) {
    std::error_code failed;
    const auto size = fs::file_size(place / file["name"].get<std::string>(), failed);
    if (failed || size != file["bytes"].get<std::uint64_t>()) return std::nullopt;
  }
  const auto checkpoint = (*manifest)["checkpoint"].get<std::string>();
  return checkpoint == "." ? place : place / checkpoint;
}

Status ModelCache::verify(std::string_view model, const std::function<bool()>& cancelled) const {
  const auto manifest = TRY(read_manifest(folder(model)));
  for (const auto& file : manifest["files"]) {
    const Digest want{Digest::Kind::sha256, file["sha256"].get<std::string>()};
    TRY(check_digest(folder(model) / file["name"].get<std::string>(), want, cancelled));
  }
  return {};
}

Result<fs::path> ModelCache::place(const ModelEntry& model, const ModelSource& source,
                                   const std::function<bool()>& cancelled) {
  const auto from = staging(model.name, source.kind);
  OrderedJson manifest;
  manifest["model"] = model.name;
  manifest["source"] = source.kind;
  // A source of one file is a checkpoint file; otherwise the folder is the checkpoint.
  manifest["checkpoint"] = source.files.size() == 1 ? source.files.front().name : ".";
  for (const auto& file : source.files) {
    const auto path = from / file.name;
    std::error_code failed;
    const auto bytes = fs::file_size(path, failed);
    if (failed) return unexpected(ErrorCode::io, "is not there", path.string());
    TRY(flush_file(path));
    const auto sha256 = file.digest.kind == Digest::Kind::sha256 && !file.digest.hex.empty()
                            ? file.digest.hex
                            : TRY(file_digest(path, Digest::Kind::sha256, cancelled));
    manifest["files"].push_back({{"name", file.name}, {"bytes", bytes}, {"sha256", sha256}});
  }
  TRY(write_text_file(from / kManifest, dump_json(manifest, 2) + "\n"));

  const auto to = folder(model.name);
  TRY(make_folders(to.parent_path()));
  std::error_code failed;
  fs::remove_all(to, failed);  // an entry that is not complete
  fs::rename(from, to, failed);
  if (failed) {
    return unexpected(ErrorCode::io, "can not place the model: " + failed.message(), to.string());
  }
  fs::remove_all(root_ / "partial" / model.name, failed);
  return source.files.size() == 1 ? to / source.files.front().name : to;
}

ModelCache::Lock::Lock(Lock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

ModelCache::Lock::~Lock() {
  if (file_ >= 0) ::close(file_);  // the lock goes with the file description
}

Result<ModelCache::Lock> ModelCache::lock(std::string_view model,
                                          const std::function<void()>& waiting,
                                          const std::function<bool()>& cancelled) {
  TRY(make_folders(root_ / "locks"));
  const auto path = root_ / "locks" / (std::string(model) + ".lock");
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) {
    return unexpected(ErrorCode::io, std::string("can not create the lock: ") + std::strerror(errno),
                      path.string());
  }
  Lock lock(file);
  bool told = false;
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return unexpected(ErrorCode::io, std::string("can not lock: ") + std::strerror(errno),
                        path.string());
    }
    if (!std::exchange(told, true) && waiting) waiting();
    if (cancelled && cancelled()) return unexpected(ErrorCode::cancelled, "stopped");
    std::this_thread::sleep_for(kLockPoll);
  }
  return lock;
}

}  // namespace oasr
