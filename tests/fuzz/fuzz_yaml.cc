// Fuzzes YAML configurations: what is accepted is JSON that can be written and read again.
#include <cstdlib>

#include "checkpoint/yaml_document.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto json = oasr::parse_yaml({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!json) return 0;
  const auto again = oasr::parse_json(json->dump(), "again");
  if (!again || *again != *json) std::abort();
  return 0;
}
