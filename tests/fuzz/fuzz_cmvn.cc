// Fuzzes both forms of a cmvn file: what is accepted has finite values of the right number.
#include <cmath>
#include <cstdlib>

#include "features/cmvn.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  for (const auto& cmvn : {oasr::cmvn_from_json(input, "fuzz", 2), oasr::cmvn_from_kaldi(input, "fuzz", 2)}) {
    if (!cmvn) continue;
    if (cmvn->mean.size() != 2 || cmvn->istd.size() != 2) std::abort();
    for (const float value : cmvn->mean) {
      if (!std::isfinite(value)) std::abort();
    }
    for (const float value : cmvn->istd) {
      if (!std::isfinite(value) || value < 0) std::abort();
    }
  }
  return 0;
}
