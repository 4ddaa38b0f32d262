// Fuzzes the specification of a quantized checkpoint: what is accepted survives a round trip.
#include <cstdlib>

#include "quant/spec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto json = oasr::parse_json(input, "fuzz");
  if (!json) return 0;
  const auto spec = oasr::quant::spec_from_json(*json);
  if (!spec) return 0;
  const auto again = oasr::parse_json(oasr::dump_json(to_json(*spec)), "again");
  if (!again || oasr::quant::spec_from_json(*again).value() != *spec) std::abort();
  return 0;
}
