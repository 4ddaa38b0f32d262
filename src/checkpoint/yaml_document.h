// YAML as the configuration files of speech toolkits use it, turned into JSON.
#pragma once

#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace oasr {

// One document of mappings, sequences and scalars. Plain scalars are typed as YAML 1.2's core schema does
// (null, true, false, integers, floats; "no" is text), quoted ones are text. Errors (bad_checkpoint, with
// the line): broken YAML, a key twice, keys that are not scalars, nesting deeper than 64, more than 2^20
// nodes with aliases written out. `where` names the file.
Result<Json> parse_yaml(std::string_view text, std::string_view where);

}  // namespace oasr
