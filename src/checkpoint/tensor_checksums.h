// Whether tensors are those that a document has the checksums of.
#pragma once

#include <string_view>

#include "base/result.h"
#include "checkpoint/checksum.h"
#include "checkpoint/state_dict.h"

namespace oasr {

// Reads all bytes; the pages of mapped files are let go on the way. bad_checkpoint, with the name of the
// tensor and of `document`, which has the table: a tensor that only one of them has, or that is corrupt.
Status check_tensors(const StateDict& dict, const Checksums& table, std::string_view document);

}  // namespace oasr
