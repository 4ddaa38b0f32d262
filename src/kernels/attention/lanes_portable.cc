#include <array>

#include "kernels/attention/lanes.h"

namespace oasr::kernels {
namespace {

constexpr std::array kLanes = {
    AttentionLane{.name = "scalar",
                  .isa = Isa::scalar,
                  .run = attention_scalar,
                  .append = kv_append_scalar},
};

}  // namespace

std::span<const AttentionLane> attention_lanes() { return kLanes; }

}  // namespace oasr::kernels
