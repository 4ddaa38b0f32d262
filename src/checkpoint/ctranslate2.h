// CTranslate2's model.bin (binary version 6): variables by name, scalars, aliases.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "checkpoint/file_bytes.h"
#include "checkpoint/state_dict.h"

namespace oasr {

struct Ct2Model {
  // Matrices and vectors, aliases included; an int8 matrix and its "…_scale" are one tensor in
  // ct2_int8. Borrowed from the file.
  StateDict tensors;
  std::map<std::string, double> scalars;  // "encoder/num_heads": 8
};

// Reads a model of WhisperSpec, revision 3, with float32, float16, bfloat16 or int8 weights.
// Other binary versions, specifications and quantizations are refused by name.
Result<Ct2Model> read_ct2_model(const FileBytes& file);

}  // namespace oasr
