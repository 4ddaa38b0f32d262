// Fuzzes the pickle of a .pt file: the input is packed into a valid archive with three storages, so
// that no checksum hides what is behind it.
#include <string>
#include <vector>

#include "checkpoint/containers.h"
#include "checkpoint/test_files.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view pickle(reinterpret_cast<const char*>(data), size);
  const auto file = oasr::testing::torch_file(
      pickle, {{"0", std::string(24, 'a')}, {"1", std::string(256, 'b')}, {"2", ""}});
  const auto input = oasr::testing::as_bytes(file);
  const auto checkpoint = oasr::read_openai(oasr::FileBytes{"fuzz.pt", input, nullptr});
  if (!checkpoint) return 0;
  for (const auto& [name, tensor] : checkpoint->tensors.tensors) {
    std::vector<float> values(static_cast<std::size_t>(tensor.shape.elements()));
    (void)oasr::decode_to_float(tensor, values);
  }
  return 0;
}
