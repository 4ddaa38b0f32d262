// Fuzzes safetensors files: whatever is accepted decodes inside its bytes.
#include <vector>

#include "checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span input(reinterpret_cast<const std::byte*>(data), size);
  const auto dict = oasr::read_safetensors({"fuzz.safetensors", input, nullptr});
  if (!dict) return 0;
  for (const auto& [name, tensor] : dict->tensors) {
    std::vector<float> values(static_cast<std::size_t>(tensor.shape.elements()));
    (void)oasr::decode_to_float(tensor, values);
  }
  return 0;
}
