// cuBLASLt of a build without CUDA, or where the toolkit had no header of it: there is none.
#include "base/check.h"
#include "kernels/cuda/cublaslt.h"

namespace oasr::kernels {

struct CublasLt::State {};

Result<std::unique_ptr<CublasLt>> CublasLt::open(Gpu&, Choice) {
  return unexpected(ErrorCode::unsupported, "oasr was built without cuBLASLt", "cublaslt",
                    "build it where the CUDA toolkit has cublasLt.h, or use a kernel of oasr's own");
}

CublasLt::CublasLt(std::unique_ptr<State>) {}
CublasLt::~CublasLt() = default;
std::string CublasLt::version() const { CHECK(false, "cuBLASLt in a build without it"); }
Status CublasLt::product(Type, std::int64_t, std::int64_t, std::int64_t, const void*, const void*, void*, Strides) {
  CHECK(false, "cuBLASLt in a build without it");
}

}  // namespace oasr::kernels
