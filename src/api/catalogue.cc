#include "api/catalogue.h"

#include <algorithm>

#include "base/check.h"
#include "base/json.h"

namespace oasr {
namespace {

Unexpected wrong(const std::string& what) {
  return unexpected(ErrorCode::invalid_argument, what, "model catalogue");
}

// A name that stays inside the folder that it is joined to.
bool plain_name(std::string_view name) {
  return !name.empty() && name.front() != '.' && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

bool is_hex(std::string_view text, std::size_t length) {
  return text.size() == length &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Result<Digest> parse_digest(const Json& object, const std::string& where) {
  Digest digest;
  if (const auto sha = object.find("sha256"); sha != object.end() && sha->is_string()) {
    digest = {Digest::Kind::sha256, sha->get<std::string>()};
    if (!is_hex(digest.hex, 64)) return wrong(where + ": sha256 is not 64 hexadecimal digits");
  } else if (const auto git = object.find("git_sha1"); git != object.end() && git->is_string()) {
    digest = {Digest::Kind::git_sha1, git->get<std::string>()};
    if (!is_hex(digest.hex, 40)) return wrong(where + ": git_sha1 is not 40 hexadecimal digits");
  }
  return digest;
}

Result<std::string> text(const Json& object, const char* key, const std::string& where) {
  const auto value = object.find(key);
  if (value == object.end() || !value->is_string()) return wrong(where + ": no text '" + key + "'");
  return value->get<std::string>();
}

std::vector<std::string> texts(const Json& object, const char* key) {
  std::vector<std::string> all;
  if (const auto list = object.find(key); list != object.end() && list->is_array()) {
    for (const auto& item : *list) {
      if (item.is_string()) all.push_back(item.get<std::string>());
    }
  }
  return all;
}

Result<SourceFile> parse_file(const Json& json, const std::string& where) {
  SourceFile file;
  file.name = TRY(text(json, "name", where));
  if (!plain_name(file.name)) return wrong(where + ": '" + file.name + "' is not a file name");
  file.url = json.value("url", "");
  if (!file.url.empty() && file.url.rfind("https://", 0) != 0) {
    return wrong(where + "/" + file.name + ": the address is not https");
  }
  file.bytes = json.value("bytes", std::uint64_t{0});
  file.digest = TRY(parse_digest(json, where + "/" + file.name));
  file.members = texts(json, "members");
  if (file.url.empty() == file.members.empty()) {
    return wrong(where + "/" + file.name + ": needs 'url' or 'members'");
  }
  return file;
}

Result<ModelSource> parse_source(const Json& json, const std::string& model) {
  ModelSource source;
  source.kind = TRY(text(json, "kind", model));
  const auto where = model + "/" + source.kind;
  if (json.contains("packages")) {
    for (const auto& item : json["packages"]) {
      SourcePackage package;
      package.name = TRY(text(item, "name", where));
      package.version = TRY(text(item, "version", where));
      package.digest = TRY(parse_digest(item, where));
      if (package.digest.hex.empty()) return wrong(where + ": a package without a digest");
      source.packages.push_back(std::move(package));
    }
  }
  if (!json.contains("files")) return wrong(where + ": no 'files'");
  for (const auto& item : json["files"]) source.files.push_back(TRY(parse_file(item, where)));
  if (source.files.empty()) return wrong(where + ": no files");
  return source;
}

Result<ModelEntry> parse_model(const Json& json) {
  ModelEntry model;
  model.name = TRY(text(json, "name", "models"));
  if (!plain_name(model.name)) return wrong("'" + model.name + "' is not a model name");
  model.aliases = texts(json, "aliases");
  model.parameters_millions = json.value("parameters_millions", 0);
  model.multilingual = json.value("multilingual", false);
  model.download_mb = json.value("download_mb", 0);
  if (!json.contains("sources")) return wrong(model.name + ": no 'sources'");
  for (const auto& item : json["sources"]) {
    model.sources.push_back(TRY(parse_source(item, model.name)));
  }
  return model;
}

}  // namespace

const ModelEntry* Catalogue::find(std::string_view name) const {
  for (const auto& model : models) {
    if (model.name == name) return &model;
    if (std::find(model.aliases.begin(), model.aliases.end(), name) != model.aliases.end()) {
      return &model;
    }
  }
  return nullptr;
}

std::string Catalogue::names() const {
  std::string all;
  for (const auto& model : models) {
    if (!all.empty()) all += ", ";
    all += model.name;
    for (const auto& alias : model.aliases) all += " (" + alias + ")";
  }
  return all;
}

Result<Catalogue> parse_catalogue(std::string_view json) {
  const auto root = TRY(parse_json(json, "model catalogue"));
  if (!root.is_object() || !root.contains("models")) return wrong("no 'models'");
  Catalogue catalogue;
  catalogue.default_model = TRY(text(root, "default", "catalogue"));
  for (const auto& item : root["models"]) catalogue.models.push_back(TRY(parse_model(item)));
  if (catalogue.find(catalogue.default_model) == nullptr) return wrong("no row for 'default'");
  return catalogue;
}

const Catalogue& builtin_catalogue() {
  static const Catalogue catalogue = [] {
    auto parsed = parse_catalogue(catalogue_json());
    CHECK(parsed.has_value(), "assets/models.json: " + parsed.error().message());
    return std::move(*parsed);
  }();
  return catalogue;
}

}  // namespace oasr
