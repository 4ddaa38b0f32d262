// Fuzzes 4-bit weights of other toolkits. The first byte says whose the tensors are ('q' QServe, 'f'
// fake-quantized, 'c' compressed-tensors) and the second what is said of them; the rest is a safetensors
// file. '{' begins a document beside QServe's tensors. What is accepted keeps every rule, packs, and unpacks
// to itself.
#include <cstdlib>

#include "checkpoint/safetensors.h"
#include "load/import_w4.h"

namespace {

using namespace oasr;

void require(bool condition) {
  if (!condition) std::abort();
}

void fuzz_document(std::string_view text) {
  const auto document = load::read_qserve_document(text);
  if (!document) return;
  const auto again = load::read_qserve_document(load::qserve_document_text(*document));
  require(again && again->spec == document->spec);
}

load::W4Claims claims_of(unsigned bits) {
  load::W4Claims claims{.form = {}, .zeros = {}, .order = {}, .requantize = (bits & 1) != 0};
  if (bits & 2) claims.zeros = bits & 4 ? formats::ZeroDomain::post_scaled : formats::ZeroDomain::pre_scaled;
  if (bits & 8) claims.order = bits & 16 ? formats::ScaleOrder::pairs : formats::ScaleOrder::quads;
  return claims;
}

void fuzz_tensors(ForeignW4 toolkit, const load::W4Claims& claims, std::span<const std::byte> bytes) {
  auto state = read_safetensors({"model.safetensors", bytes, nullptr});
  if (!state) return;
  for (const auto& [path, tensors] : take_foreign_layers(*state, toolkit)) {
    const auto imported = load::foreign_weight(toolkit, tensors, claims);
    if (!imported) continue;
    require(formats::check(imported->weight).has_value());
    const auto packed = formats::pack(imported->weight);
    if (packed) require(formats::unpack(packed->view(), imported->weight.domain).value() == imported->weight);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  if (data[0] == '{') fuzz_document({reinterpret_cast<const char*>(data), size});
  const auto rest = std::as_bytes(std::span(data, size)).subspan(2);
  const load::W4Claims claims = claims_of(data[1]);
  if (data[0] == 'q') fuzz_tensors(ForeignW4::qserve, claims, rest);
  if (data[0] == 'f') fuzz_tensors(ForeignW4::fake_quant, claims, rest);
  if (data[0] == 'c') fuzz_tensors(ForeignW4::compressed_tensors, claims, rest);
  return 0;
}
