// Fuzzes zip archives: each entry inflates within its limit; and .pt files as a whole.
#include <cstdlib>

#include "checkpoint/containers.h"
#include "checkpoint/zip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint64_t kLimit = 1 << 20;
  const std::span input(reinterpret_cast<const std::byte*>(data), size);
  const auto archive = oasr::ZipArchive::open(input, "fuzz.zip");
  if (!archive) return 0;
  for (const auto& entry : archive->entries()) {
    if (archive->find(entry.name) != &entry) std::abort();
    std::uint64_t total = 0;
    (void)archive->extract(entry, kLimit, [&](std::span<const std::byte> part) -> oasr::Status {
      total += part.size();
      return {};
    });
    if (total > kLimit) std::abort();
  }
  (void)oasr::read_openai(oasr::FileBytes{"fuzz.pt", input, nullptr});
  return 0;
}
