#include "kernels/linear/activation.h"

#include "base/check.h"
#include "tensor/exact_math.h"

namespace oasr::kernels {

float activate(Activation activation, float x) {
  switch (activation) {
    case Activation::none: return x;
    case Activation::gelu: return exact::gelu(x);
    case Activation::swish: return exact::swish(x);
    case Activation::relu: return 0.0f > x ? 0.0f : x;
    case Activation::tanh: return exact::tanh(x);
  }
  CHECK(false, "an activation");
}

}  // namespace oasr::kernels
