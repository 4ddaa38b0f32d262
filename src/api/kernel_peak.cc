#include <string_view>

#include "kernels/peak/op.h"
#include "oasr/recognizer.h"

namespace oasr {
namespace {

// "avx512_vnni" of "scaled_mm avx512_vnni"; nothing for another kernel or a reference.
std::optional<Isa> isa_of(std::string_view kernel, std::string_view op) {
  if (!kernel.starts_with(op)) return std::nullopt;
  return parse_enum(isa_names(), kernel.substr(op.size()));
}

}  // namespace

double kernel_peak_gops(const std::string& kernel, double seconds) {
  using kernels::PeakKind;
  if (const auto isa = isa_of(kernel, "scaled_mm ")) return kernels::peak_gops(PeakKind::int8, *isa, seconds);
  if (const auto isa = isa_of(kernel, "linear ")) return kernels::peak_gops(PeakKind::float32, *isa, seconds);
  return 0;
}

}  // namespace oasr
