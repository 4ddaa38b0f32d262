#include "oasr/models.h"

#include <algorithm>
#include <cctype>

#include "api/guard.h"
#include "api/pull.h"
#include "base/env.h"
#include "base/fs.h"

namespace oasr {

namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

std::vector<CatalogueModel> catalogue() {
  const auto cache = ModelCache::of_user();
  std::vector<CatalogueModel> rows;
  for (const auto& model : builtin_catalogue().models) {
    CatalogueModel row{model.name, model.aliases, model.parameters_millions, model.multilingual,
                       model.download_mb, {}, false, {}};
    for (const auto& source : model.sources) row.sources.push_back(source.kind);
    if (const auto path = cache.find(model.name)) {
      row.cached = true;
      row.path = path->string();
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string default_model() { return builtin_catalogue().default_model; }

std::string cache_folder() { return ModelCache::of_user().root().string(); }

bool in_catalogue(std::string_view name) { return builtin_catalogue().find(name) != nullptr; }

Result<std::string> pull_model(std::string_view name, const PullOptions& options) {
  return guarded([&]() -> Result<std::string> {
    const PullEnvironment environment{builtin_catalogue(), ModelCache::of_user(),
                                      TRY(env_flag("OASR_OFFLINE")), false};
    return TRY(pull(environment, name, options)).string();
  });
}

Result<std::string> resolve_model(std::string_view name_or_path) {
  const auto* model = builtin_catalogue().find(name_or_path);
  if (model != nullptr) {
    if (const auto path = ModelCache::of_user().find(model->name)) return path->string();
    return unexpected(ErrorCode::not_found, "is not in the cache", model->name,
                      "oasr pull " + model->name);
  }
  const std::string path(name_or_path);
  std::error_code failed;
  if (fs::exists(path, failed)) return path;
  const auto* meant = builtin_catalogue().find(lower(path));
  return unexpected(ErrorCode::not_found, "is neither a path nor a name of the catalogue", path,
                    (meant != nullptr ? "did you mean " + lower(path) + "? " : "") +
                        ("names: " + builtin_catalogue().names()));
}

}  // namespace oasr
