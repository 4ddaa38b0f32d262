#include "engine/fault_error.h"

namespace oasr::engine {

Error fault_error(const models::Fault& fault) {
  return {ErrorCode::bad_checkpoint,
          "the model computed NaN or infinity in " + fault.layer, {},
          "the checkpoint is damaged, or its numbers are beyond this precision: compare another copy, "
          "or load it without --quantization and with --dtype float32"};
}

}  // namespace oasr::engine
