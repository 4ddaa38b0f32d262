// Fuzzes CTranslate2's model.bin: whatever is accepted decodes inside its bytes.
#include <vector>

#include "checkpoint/ctranslate2.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span input(reinterpret_cast<const std::byte*>(data), size);
  const auto model = oasr::read_ct2_model({"model.bin", input, nullptr});
  if (!model) return 0;
  for (const auto& [name, tensor] : model->tensors.tensors) {
    std::vector<float> values(static_cast<std::size_t>(tensor.shape.elements()));
    (void)oasr::decode_to_float(tensor, values);
  }
  return 0;
}
