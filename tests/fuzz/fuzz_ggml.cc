// Fuzzes whisper.cpp's files: whatever is accepted decodes inside its bytes.
#include <vector>

#include "checkpoint/containers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span input(reinterpret_cast<const std::byte*>(data), size);
  const auto checkpoint = oasr::read_ggml(oasr::FileBytes{"fuzz.bin", input, nullptr});
  if (!checkpoint) return 0;
  for (const auto& [name, tensor] : checkpoint->tensors.tensors) {
    std::vector<float> values(static_cast<std::size_t>(tensor.shape.elements()));
    (void)oasr::decode_to_float(tensor, values);
  }
  return 0;
}
