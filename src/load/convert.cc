#include "load/convert.h"

#include "base/json.h"

namespace oasr::load {
namespace {

constexpr const char* kQuantization = "quantization";  // a document of a native checkpoint

// What was chosen while loading is a recipe once it is written: round to nearest.
quant::QuantizationSpec as_written(quant::QuantizationSpec spec) {
  if (spec.producer.recipe == "online") spec.producer.recipe = spec.schemes.front() + "_rtn";
  return spec;
}

}  // namespace

NativeContent content_of(const LoadedModel& loaded) {
  NativeContent content;
  content.architecture = loaded.model->info().architecture;
  content.source_container = loaded.source.origin();
  content.source_facts = loaded.source.source_facts;
  content.notes = loaded.source.notes;
  content.documents = loaded.source.documents;
  content.documents.erase(kQuantization);
  content.tokenizer = loaded.source.tokenizer;
  return content;
}

Status save_native(const LoadedModel& loaded, const std::filesystem::path& folder,
                   const WriteProgress& progress) {
  NativeContent content = content_of(loaded);
  if (!loaded.quantization.empty()) {
    content.quantization = dump_json(quant::to_json(as_written(loaded.quantization)));
  }
  content.tensors = loaded.model->layers().state();
  return write_native(folder, content, progress);
}

}  // namespace oasr::load
