#include "oasr/inspect.h"

#include "api/device.h"
#include "api/digest.h"
#include "api/guard.h"
#include "base/fs.h"
#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "device/thread_pool.h"
#include "load/load.h"
#include "models/registry.h"
#include "oasr/models.h"
#include "text/tokenizer.h"

namespace oasr {
namespace {

std::string_view format_name(StorageFormat format) {
  return enum_name(storage_format_names(), format);
}

void describe_tensors(const Checkpoint& checkpoint, ModelReport& report) {
  for (const auto& [name, tensor] : checkpoint.tensors.tensors) {
    TensorReport row{name, std::string(format_name(tensor.format)), {}, tensor.bytes.size()};
    for (const auto dim : tensor.shape.extents()) row.shape.push_back(dim);
    report.parameters += tensor.shape.elements();
    report.formats[row.format] += tensor.shape.elements();
    report.tensors.push_back(std::move(row));
  }
}

Status describe_files(const Checkpoint& checkpoint, const InspectOptions& options,
                      ModelReport& report) {
  for (const auto& path : checkpoint.files) {
    std::error_code failed;
    FileReport row{path.string(), fs::file_size(path, failed), {}};
    if (failed) return unexpected(ErrorCode::io, failed.message(), path.string());
    if (options.checksums) row.sha256 = TRY(file_digest(path, Digest::Kind::sha256));
    report.files.push_back(std::move(row));
  }
  return {};
}

// OpenAI's dimensions where the container has them, else what a Hugging Face configuration says.
void describe_dimensions(const Checkpoint& checkpoint, ModelReport& report) {
  const auto dims = checkpoint.documents.find("dims");
  const auto config = checkpoint.documents.find("config.json");
  const auto& document = dims != checkpoint.documents.end() ? dims : config;
  if (document == checkpoint.documents.end()) return;
  const auto json = parse_json(document->second, document->first);
  if (!json || !json->is_object()) return;
  for (const auto& [key, value] : json->items()) {
    if (value.is_number_integer()) report.dimensions.emplace_back(key, value.dump());
  }
}

// The strict load, in the storage that costs least memory, says whether the checkpoint is whole.
Status describe_model(Checkpoint checkpoint, const InspectOptions& options, const Device& device, ModelReport& report) {
  const auto* architecture = TRY(models::find_architecture(checkpoint));
  report.architecture = architecture->name;
  ThreadPool pool(TRY(thread_count(0)));
  const Isa isa = TRY(selected_isa());
  const ExecContext context{.pool = &pool, .isa = isa, .gpu = device.gpu.get()};
  const auto loaded = TRY(load::load_checkpoint(std::move(checkpoint), {.gpu_optional = device.optional}, context));
  const auto& info = loaded.model->info();
  report.loads = true;
  report.size_name = info.size_name;
  report.parameters = info.parameters;  // a tensor under two names counts once
  report.languages = info.languages;
  report.vocabulary_size = loaded.model->tokenizer().size();
  report.notes = info.notes;
  if (options.quantization) {
    report.quantization_summary = load::to_text(loaded.report, true);
    report.quantization_info = dump_json(load::to_json(loaded.report), 2);
  }
  return {};
}

}  // namespace

Result<ModelReport> inspect_model(const std::string& path, const InspectOptions& options) {
  return guarded([&]() -> Result<ModelReport> {
    const Device device = TRY(open_device(options.device));
    ModelReport report;
    report.path = TRY(resolve_model(path));
    auto checkpoint = TRY(open_checkpoint(report.path));
    report.container = checkpoint.container;
    report.documents = checkpoint.documents;
    const auto& source = checkpoint.tokenizer;
    report.tokenizer =
        source.kind == "none" ? "built in" : source.origin + " (" + source.kind + ")";
    if (!checkpoint.source_container.empty()) report.container += " (from " + checkpoint.source_container + ")";
    describe_tensors(checkpoint, report);
    describe_dimensions(checkpoint, report);
    TRY(describe_files(checkpoint, options, report));
    auto notes = checkpoint.notes;
    if (auto loaded = describe_model(std::move(checkpoint), options, device, report); !loaded) {
      report.notes = std::move(notes);
      report.notes.push_back("does not load: " + loaded.error().message());
    }
    return report;
  });
}

std::string to_json(const ModelReport& report, bool tensors, int indent) {
  OrderedJson json = {{"path", report.path},
                      {"container", report.container},
                      {"architecture", report.architecture},
                      {"size", report.size_name},
                      {"loads", report.loads},
                      {"parameters", report.parameters},
                      {"formats", report.formats},
                      {"tokenizer", report.tokenizer},
                      {"vocabulary_size", report.vocabulary_size},
                      {"languages", report.languages},
                      {"tensor_count", report.tensors.size()},
                      {"notes", report.notes}};
  json["dimensions"] = OrderedJson::object();
  for (const auto& [key, value] : report.dimensions) json["dimensions"][key] = std::stoll(value);
  json["files"] = OrderedJson::array();
  for (const auto& file : report.files) {
    OrderedJson row = {{"path", file.path}, {"bytes", file.bytes}};
    if (!file.sha256.empty()) row["sha256"] = file.sha256;
    json["files"].push_back(std::move(row));
  }
  if (!report.quantization_info.empty()) {
    json["quantization"] = OrderedJson::parse(report.quantization_info, nullptr, false);
  }
  if (tensors) {
    json["tensors"] = OrderedJson::array();
    for (const auto& tensor : report.tensors) {
      json["tensors"].push_back({{"name", tensor.name},
                                 {"format", tensor.format},
                                 {"shape", tensor.shape},
                                 {"bytes", tensor.bytes}});
    }
  }
  return dump_json(json, indent) + "\n";
}

}  // namespace oasr
