#include "oasr/convert.h"

#include "api/guard.h"
#include "api/load_options.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/places.h"
#include "load/convert.h"
#include "load/export_qserve.h"
#include "load/import_w4.h"

namespace oasr {
namespace {

std::uint64_t size_of(const std::vector<fs::path>& files) {
  std::uint64_t bytes = 0;
  for (const fs::path& file : files) {
    std::error_code ignored;
    const auto size = fs::file_size(file, ignored);
    if (!ignored) bytes += size;
  }
  return bytes;
}

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) files.push_back(entry.path());
  return files;
}

WriteProgress progress_of(const ConvertOptions& options) {
  return [&options](std::uint64_t done, std::uint64_t total) {
    if (options.progress) options.progress(static_cast<double>(done), static_cast<double>(total));
    return !(options.cancelled && options.cancelled());
  };
}

Result<load::W4Claims> claims_of(const ConvertOptions& options) {
  auto claims = TRY(load::parse_w4_claims(options.w4));
  claims.requantize = options.requantize;
  return claims;
}

using Save = Status (*)(const load::LoadedModel&, const fs::path&, const WriteProgress&);

Result<Save> save_as(const std::string& to) {
  if (to == "oasr") return Save(load::save_native);
  if (to == "qserve") return Save(load::save_qserve);
  return unexpected(ErrorCode::invalid_argument, "'" + to + "' is no layout that is written", "to",
                    "use oasr or qserve");
}

}  // namespace

Status check_convert_options(const ConvertOptions& options) {
  TRY(claims_of(options));
  TRY(save_as(options.to));
  return {};
}

Result<ConvertReport> convert_model(const std::string& model, const std::string& destination,
                                    const ConvertOptions& options) {
  return guarded([&]() -> Result<ConvertReport> {
    const auto how = TRY(load_options(options.dtype, options.quantization, options.quantization_options));
    const load::W4Claims claims = TRY(claims_of(options));
    const bool claimed = !options.w4.empty() || options.requantize;
    const Save save = TRY(save_as(options.to));
    ThreadPool pool(TRY(thread_count(options.threads)));
    const ExecContext context{.pool = &pool, .isa = TRY(selected_isa())};
    const auto path = TRY(locate_model(model, options.download));
    TRY(check_apart(destination, path));
    const auto loaded = TRY(load::load_for_conversion(path, how, claimed ? &claims : nullptr, context));
    TRY(save(loaded, destination, progress_of(options)));
    return ConvertReport{.path = destination,
                         .bytes = size_of(files_of(destination)),
                         .source_bytes = size_of(loaded.source.files),
                         .summary = load::to_text(loaded.report, false),
                         .quantization = dump_json(load::to_json(loaded.report), 2) + "\n"};
  });
}

}  // namespace oasr
