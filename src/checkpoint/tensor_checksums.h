// Whether tensors are those that a document has the checksums of.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "checkpoint/checksum.h"
#include "checkpoint/state_dict.h"

namespace oasr {

// The names must be those of the table. bad_checkpoint, with the first tensor that only one of them has and
// the name of `document`, which has the table.
Status check_tensor_names(const std::set<std::string, std::less<>>& names, const Checksums& table,
                          std::string_view document);

// That, and reads all bytes; the pages of mapped files are let go on the way. bad_checkpoint for a tensor that
// is corrupt, or of another dtype than it was written with; that is named where the checksum tells it.
Status check_tensors(const StateDict& dict, const Checksums& table, std::string_view document);

}  // namespace oasr
