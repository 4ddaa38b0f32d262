#include "oasr/convert.h"

#include "api/guard.h"
#include "api/load_options.h"
#include "base/fs.h"
#include "base/json.h"
#include "load/convert.h"

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

}  // namespace

Result<ConvertReport> convert_model(const std::string& model, const std::string& destination,
                                    const ConvertOptions& options) {
  return guarded([&]() -> Result<ConvertReport> {
    const auto how = TRY(load_options(options.dtype, options.quantization, options.quantization_options));
    ThreadPool pool(TRY(thread_count(options.threads)));
    const ExecContext context{.pool = &pool, .isa = TRY(selected_isa())};
    const auto path = TRY(locate_model(model, options.download));
    const auto loaded = TRY(load::load_model(path, how, context));
    TRY(load::save_native(loaded, destination, progress_of(options)));
    return ConvertReport{.path = destination,
                         .bytes = size_of(files_of(destination)),
                         .source_bytes = size_of(loaded.source.files),
                         .summary = load::to_text(loaded.report, false),
                         .quantization = dump_json(load::to_json(loaded.report), 2) + "\n"};
  });
}

}  // namespace oasr
