#include "quant/methods/linear_method.h"

namespace oasr::quant {

kernels::NotFinite LinearMethod::forward_into(ExecContext&, const Activation&, const StaticInput&,
                                              Activation&) const {
  CHECK(false, "a link makes a layer emit int8 that can not");
}

}  // namespace oasr::quant
