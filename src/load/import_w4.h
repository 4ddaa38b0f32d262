// 4-bit checkpoints of other toolkits as one of our own, in memory.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checksum.h"
#include "load/foreign_weight.h"
#include "load/load.h"

namespace oasr::load {

// The document kQServeDocument: what QServe's tensors leave unsaid, the specification that they were written
// by, and the checksums of all tensors. Errors of the reader are bad_checkpoint.
struct QServeDocument {
  W4Claims claims;
  quant::QuantizationSpec spec;
  Checksums tensors = {};
};
std::string qserve_document_text(const QServeDocument& document);
Result<QServeDocument> read_qserve_document(std::string_view text);

struct ImportedCheckpoint {
  Checkpoint checkpoint;           // container "native"
  std::vector<std::string> notes;  // a line a layer that was requantized, with the error
};

// A checkpoint of a Hugging Face folder with 4-bit layers (foreign_w4() says whose) under the names of our
// own layers: products that we stack are put together from their parts, full precision stays as it is.
// Errors: those of foreign_weight(), with the layer's path; unsupported for an architecture that is not
// served; bad_checkpoint for a layer that the model does not have, or of which only some parts are in 4 bits.
Result<ImportedCheckpoint> import_w4(Checkpoint checkpoint, const W4Claims& claims);

// load_checkpoint() that takes such a checkpoint too. invalid_argument: claims (not null) about one that is
// none.
Result<LoadedModel> load_for_conversion(const std::filesystem::path& path, const LoadOptions& options,
                                        const W4Claims* claims, const ExecContext& context);

}  // namespace oasr::load
