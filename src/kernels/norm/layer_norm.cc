#include "kernels/norm/op.h"

namespace oasr::kernels {

void layer_norm(ExecContext&, const LayerNormArgs& args) { layer_norm_reference(args); }

}  // namespace oasr::kernels
