#include "api/pull.h"

#include "api/digest.h"
#include "api/download.h"
#include "api/package_source.h"
#include "base/fs.h"

namespace oasr {
namespace {

void notice(const PullOptions& options, const std::string& line) {
  if (options.notice) options.notice(line);
}

// Downloads one file to `folder`, verified. A resumed file with the wrong digest may have been
// joined from two versions: it is fetched once more from the start.
Status fetch_file(const PullEnvironment& environment, const ModelSource& source,
                  const SourceFile& file, const fs::path& folder, const PullOptions& options) {
  const auto path = folder / file.name;
  const auto part = folder / (file.name + ".part");
  std::error_code failed;
  if (!file.digest.hex.empty() && fs::exists(path, failed)) {
    if (check_digest(path, file.digest, options.cancelled)) return {};
  }
  while (true) {
    DownloadRequest request{file.url, part, file.bytes, environment.plain_http_to_loopback, {},
                            options.cancelled};
    if (options.progress) {
      request.progress = [&](std::uint64_t done, std::uint64_t total) {
        options.progress(PullProgress{source.kind, file.name, done, total});
      };
    }
    const auto result = TRY(download_file(request));
    const auto& want = file.digest.hex.empty() ? result.announced : file.digest;
    auto good = check_digest(part, want, options.cancelled);
    if (good) break;
    if (good.error().code == ErrorCode::cancelled) return good;
    fs::remove(part, failed);
    if (!result.resumed) return unexpected(ErrorCode::network, good.error().what, file.url);
    notice(options, file.name + ": the resumed file is wrong, starting over");
  }
  fs::rename(part, path, failed);
  if (failed) return unexpected(ErrorCode::io, failed.message(), path.string());
  return {};
}

Result<fs::path> pull_from(const PullEnvironment& environment, const ModelEntry& model,
                           const ModelSource& source, const PullOptions& options) {
  auto cache = environment.cache;
  const auto folder = cache.staging(model.name, source.kind);
  TRY(make_folders(folder));
  if (source.packages.empty()) {
    for (const auto& file : source.files) {
      TRY(fetch_file(environment, source, file, folder, options));
    }
  } else {
    TRY(fetch_packages({source, folder, options.notice, options.cancelled}));
  }
  return cache.place(model, source, options.cancelled);
}

Unexpected all_failed(ErrorCode code, const ModelEntry& model,
                      const std::vector<std::string>& tried) {
  std::string what = "no source of '" + model.name + "' gave it:";
  for (const auto& line : tried) what += "\n  " + line;
  return unexpected(code, what, {},
                    "check the network and proxy, or pass a checkpoint's path as the model");
}

// That a source that was asked for is one of the model's.
Status check_source(const ModelEntry& model, const std::string& asked) {
  std::string kinds;
  for (const auto& source : model.sources) {
    if (asked == source.kind) return {};
    kinds += (kinds.empty() ? "" : ", ") + source.kind;
  }
  if (asked.empty()) return {};
  return unexpected(ErrorCode::invalid_argument, "has no source '" + asked + "'", model.name, "sources: " + kinds);
}

// The cached checkpoint, verified if asked for; nothing when it has to be pulled.
Result<std::optional<fs::path>> cached(const PullEnvironment& environment, const ModelEntry& model,
                                       const PullOptions& options) {
  const auto path = environment.cache.find(model.name);
  if (path && options.verify) {
    auto good = environment.cache.verify(model.name, options.cancelled);
    if (!good) {
      if (good.error().code == ErrorCode::cancelled) return unexpected(good.error());
      notice(options, good.error().message() + "; pulling it again");
      return std::optional<fs::path>();
    }
  }
  return path;
}

}  // namespace

Result<fs::path> pull(const PullEnvironment& environment, std::string_view name,
                      const PullOptions& options) {
  const auto* model = environment.catalogue.find(name);
  if (model == nullptr) {
    return unexpected(ErrorCode::not_found, "is not in the catalogue", std::string(name),
                      "names: " + environment.catalogue.names());
  }
  TRY(check_source(*model, options.source));
  if (auto path = TRY(cached(environment, *model, options))) return *path;
  if (environment.offline) {
    return unexpected(ErrorCode::network, "is not in the cache, and OASR_OFFLINE forbids the network",
                      model->name, "unset OASR_OFFLINE, or pass a checkpoint's path as the model");
  }
  auto cache = environment.cache;
  const auto lock = TRY(cache.lock(
      model->name, [&] { notice(options, "waiting for another process that pulls it"); },
      options.cancelled));
  if (auto path = TRY(cached(environment, *model, options))) return *path;  // the other one did it

  std::vector<std::string> tried;
  auto code = ErrorCode::network;
  for (const auto& source : model->sources) {
    if (!options.source.empty() && options.source != source.kind) continue;
    notice(options, "trying " + source.kind);
    auto path = pull_from(environment, *model, source, options);
    if (path) return path;
    if (path.error().code == ErrorCode::cancelled) return path;
    tried.push_back(source.kind + ": " + path.error().message());
    notice(options, tried.back());
    code = path.error().code == ErrorCode::io ? ErrorCode::io : code;
  }
  return all_failed(code, *model, tried);
}

}  // namespace oasr
