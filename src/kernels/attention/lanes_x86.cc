#include <array>

#include "kernels/attention/lanes.h"

namespace oasr::kernels {
namespace {

constexpr std::array kLanes = {
    AttentionLane{.name = "scalar",
                  .isa = Isa::scalar,
                  .run = attention_scalar,
                  .append = kv_append_scalar},
    AttentionLane{.name = "avx2",
                  .isa = Isa::avx2,
                  .run = attention_avx2,
                  .append = kv_append_avx2},
    AttentionLane{.name = "avx512",
                  .isa = Isa::avx512,
                  .run = attention_avx512,
                  .append = kv_append_avx512},
};

}  // namespace

std::span<const AttentionLane> attention_lanes() { return kLanes; }

}  // namespace oasr::kernels
