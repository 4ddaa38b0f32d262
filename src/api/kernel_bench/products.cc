// Products: every lane of a CPU beside the definition, the tiles of a GPU beside cuBLASLt.
#include <array>

#include "api/kernel_bench/problem.h"
#include "kernels/linear/cuda.h"
#include "kernels/linear/op.h"
#include "kernels/scaled_mm/cuda.h"
#include "kernels/scaled_mm/op.h"

namespace oasr::kernel_bench {
namespace {

using namespace kernels;

constexpr std::int64_t kFewRows = 256;                // from then on the rows are what fills a cache
constexpr double kMostOfDefinition = 1 << 26;         // multiplications; a plain loop takes 0.1 s for them

int weight_sets(const Place& place, const KernelShape& s, double bytes_of_weight) {
  return s.m > kFewRows ? 1 : sets_for(place, d(s.n * s.k) * bytes_of_weight);
}

// A case with what its product has to do; bytes of an element of the rows, the weight and the output.
Case product(const char* op, const KernelShape& s, std::string kernel, std::string ceiling, int a, int w, int y) {
  Case c;
  c.time.op = op;
  c.time.shape = s;
  c.time.kernel = std::move(kernel);
  c.time.ceiling = std::move(ceiling);
  c.time.operations = 2 * d(s.m) * d(s.n) * d(s.k);
  c.time.bytes = a * d(s.m * s.k) + w * d(s.n * s.k) + y * d(s.m * s.n);
  return c;
}

void leave_out_if_long(Case& c) {
  if (c.time.operations > 2 * kMostOfDefinition) c.time.missing = "the plain loops would take seconds";
}

// --- cuBLASLt ------------------------------------------------------------------------------------------------------

struct CublasLtType {
  CublasLt::Type type;
  const char* name;
  int bytes, y_bytes;  // of an element
};
constexpr std::array kCublasLtTypes = {
    CublasLtType{CublasLt::Type::int8, "int8", 1, 4},
    CublasLtType{CublasLt::Type::fp8_e4m3, "fp8_e4m3", 1, 2},
    CublasLtType{CublasLt::Type::float16, "float16", 2, 2},
};
constexpr double kCublasLtBytes = 4;  // of an element of a or w in all types

struct CublasLtData {
  CublasLtData(const Place& place, const KernelShape& s, int sets)
      : y(place, sets, s.m * s.n),
        a8(place, sets, std::span<const std::int8_t>(some_int8(s.m * s.k, 21))),
        w8(place, sets, std::span<const std::int8_t>(some_int8(s.n * s.k, 22))),
        a_fp8(place, sets, std::span<const std::uint8_t>(some_fp8(s.m * s.k, 23))),
        w_fp8(place, sets, std::span<const std::uint8_t>(some_fp8(s.n * s.k, 24))),
        a16(place, sets, std::span<const std::uint16_t>(some_halves(s.m * s.k, 25))),
        w16(place, sets, std::span<const std::uint16_t>(some_halves(s.n * s.k, 26))) {}
  const void* a(CublasLt::Type type, int set) {
    if (type == CublasLt::Type::int8) return a8.at(set);
    return type == CublasLt::Type::fp8_e4m3 ? static_cast<const void*>(a_fp8.at(set)) : a16.at(set);
  }
  const void* w(CublasLt::Type type, int set) {
    if (type == CublasLt::Type::int8) return w8.at(set);
    return type == CublasLt::Type::fp8_e4m3 ? static_cast<const void*>(w_fp8.at(set)) : w16.at(set);
  }
  Sets<float> y;  // the largest output
  Sets<std::int8_t> a8, w8;
  Sets<std::uint8_t> a_fp8, w_fp8;
  Sets<std::uint16_t> a16, w16;
};

double cublaslt_bytes(const KernelShape& s, int sets) {
  return sets * (kCublasLtBytes * d(s.m * s.k + s.n * s.k) + 4 * d(s.m * s.n));
}

// Its products of the shape, without an epilogue.
void add_cublaslt(Problem& problem, const char* op, const Place& place, const KernelShape& s) {
  std::shared_ptr<CublasLtData> data;
  if (place.cublaslt != nullptr) data = std::make_shared<CublasLtData>(place, s, problem.sets);
  for (const CublasLtType& row : kCublasLtTypes) {
    Case& c = problem.cases.emplace_back(
        product(op, s, std::string("cublaslt ") + row.name, row.name, row.bytes, row.bytes, row.y_bytes));
    if (data == nullptr) {
      c.time.missing = place.no_cublaslt;
    } else if (!CublasLt::takes(row.type, s.n, s.k)) {
      c.time.missing = "cuBLASLt does not take this n and k";
    } else {
      c.call = [lt = place.cublaslt, data, s, type = row.type](int set) {
        return lt->product(type, s.m, s.n, s.k, data->a(type, set), data->w(type, set), data->y.at(set));
      };
    }
  }
}

// --- scaled_mm -----------------------------------------------------------------------------------------------------

constexpr const char* kScaledMM = "scaled_mm";

struct ScaledMMData {
  ScaledMMData(const Place& place, const KernelShape& s, int sets)
      : shape(s),
        a(place, sets, std::span<const std::int8_t>(some_int8(s.m * s.k, 1))),
        scale(place, 1, std::span<const float>(some_scales(s.m, 2))),
        bias(place, 1, std::span<const float>(some_floats(s.n, 3))),
        y(place, sets, s.m * s.n) {
    const std::vector<std::int8_t> w = some_int8(s.n * s.k, 4);
    const std::vector<float> w_scale = some_scales(s.n, 5);
    for (int i = 0; i < sets; ++i) {
      weights.push_back(PackedInt8Weight::pack(s.n, s.k, w, w_scale));
      if (place.gpu != nullptr) weights.back().place(*place.gpu);
    }
  }
  ScaledMMArgs args(int set) {
    return {.a = a.at(set),
            .lda = shape.k,
            .a_scale = ActivationScale::per_token(scale.at(0)),
            .m = shape.m,
            .weight = &weights[static_cast<std::size_t>(set)],
            .bias = bias.at(0)};
  }
  FloatOutput out(int set) { return {.y = y.at(set), .ldy = shape.n}; }

  KernelShape shape;
  Sets<std::int8_t> a;
  Sets<float> scale, bias, y;
  std::vector<PackedInt8Weight> weights;
};
using ScaledMMDataPtr = std::shared_ptr<ScaledMMData>;

Case scaled_mm_case(const ScaledMMDataPtr& data, std::string kernel, std::string ceiling) {
  Case c = product(kScaledMM, data->shape, std::move(kernel), std::move(ceiling), 1, 1, 4);
  c.group = kScaledMM;
  c.result = {data->y.bytes()};
  return c;
}

void add_lanes(Problem& problem, const Place& place, const ScaledMMDataPtr& data) {
  const auto lanes = lanes_here(scaled_mm_lanes(), place);
  for (const ScaledMMLane* lane : lanes) {
    Case c = scaled_mm_case(data, "scaled_mm " + std::string(lane->name), lane_ceiling("int8", lane->name));
    c.time.chosen = lane == lanes.back();
    ExecContext context{.pool = place.pool, .isa = lane->isa};
    scaled_mm_reserve(context, data->shape.k);
    c.call = [data, context](int set) mutable -> Status {
      scaled_mm(context, data->args(set), data->out(set));
      return {};
    };
    problem.cases.push_back(std::move(c));
  }
  Case c = scaled_mm_case(data, "scaled_mm reference", "");
  c.time.chosen = lanes.empty();
  leave_out_if_long(c);
  c.call = [data](int set) -> Status {
    scaled_mm_reference(data->args(set), data->out(set));
    return {};
  };
  problem.cases.push_back(std::move(c));
}

struct TileName {
  ScaledMMTile tile;
  const char* name;
};
constexpr std::array kTileNames = {
    TileName{ScaledMMTile::m16n16, "scaled_mm mma_sync m16n16"},
    TileName{ScaledMMTile::m16n32, "scaled_mm mma_sync m16n32"},
    TileName{ScaledMMTile::m32n32, "scaled_mm mma_sync m32n32"},
    TileName{ScaledMMTile::m64n32, "scaled_mm mma_sync m64n32"},
    TileName{ScaledMMTile::m64n64, "scaled_mm mma_sync m64n64"},
    TileName{ScaledMMTile::m128n128, "scaled_mm mma_sync m128n128"},
    TileName{ScaledMMTile::m128n256, "scaled_mm mma_sync m128n256"},
    TileName{ScaledMMTile::wide_m128n128, "scaled_mm wgmma m128n128"},
    TileName{ScaledMMTile::wide_m128n256, "scaled_mm wgmma m128n256"},
};
static_assert(kTileNames.size() == kScaledMMTiles.size());

// Tiles that are worth a look: those of few rows would be slow for many, and the other way round.
bool fits(ScaledMMTile tile, std::int64_t m) {
  if (m > 2 * kFewRows) return tile >= ScaledMMTile::m64n64;
  return m > 64 || tile <= ScaledMMTile::m64n64 || is_wide(tile);
}

// Why the GPU does not run it, or nothing.
std::string missing_because(ScaledMMTile tile, const GpuInfo& gpu) {
  if (scaled_mm_runs(tile, gpu)) return {};
  return is_wide(tile) ? "wgmma needs compute capability 9.0 and a build for 90a"
                       : "a block can not have so much shared memory on this card";
}

void add_tiles(Problem& problem, const Place& place, const ScaledMMDataPtr& data) {
  Gpu& gpu = *place.gpu;
  const KernelShape& s = data->shape;
  const ScaledMMTile chosen = scaled_mm_tile(s.m, s.n, s.k, gpu.info());
  for (const TileName& row : kTileNames) {
    if (row.tile != chosen && !fits(row.tile, s.m)) continue;
    Case c = scaled_mm_case(data, row.name, "int8");
    c.time.chosen = row.tile == chosen;
    c.time.missing = missing_because(row.tile, gpu.info());
    c.call = [data, &gpu, tile = row.tile](int set) -> Status {
      scaled_mm_cuda(gpu, data->args(set), data->out(set), tile);
      return {};
    };
    problem.cases.push_back(std::move(c));
  }
}

// --- linear --------------------------------------------------------------------------------------------------------

constexpr const char* kLinear = "linear";

struct LinearData {
  LinearData(const Place& place, const KernelShape& s, int sets)
      : shape(s),
        x(place, sets, std::span<const float>(some_floats(s.m * s.k, 11))),
        bias(place, 1, std::span<const float>(some_floats(s.n, 12))),
        y(place, sets, s.m * s.n) {
    const std::vector<float> row = some_floats(s.k, 13);
    for (int i = 0; i < sets; ++i) {
      weights.push_back(PackedWeight::pack(s.n, s.k, DType::f16, [&](std::int64_t n, std::span<float> out) {
        const float factor = 1.0f / static_cast<float>(1 + n % 7);
        for (std::size_t j = 0; j < out.size(); ++j) out[j] = factor * row[j];
      }));
      if (place.gpu != nullptr) weights.back().place(*place.gpu);
    }
  }
  LinearArgs args(int set) {
    return {.x = x.at(set),
            .ldx = shape.k,
            .m = shape.m,
            .weight = &weights[static_cast<std::size_t>(set)],
            .bias = bias.at(0),
            .y = y.at(set),
            .ldy = shape.n};
  }

  KernelShape shape;
  Sets<float> x, bias, y;
  std::vector<PackedWeight> weights;
};
using LinearDataPtr = std::shared_ptr<LinearData>;

Case linear_case(const LinearDataPtr& data, std::string kernel, std::string ceiling, std::string_view arithmetic) {
  Case c = product(kLinear, data->shape, std::move(kernel), std::move(ceiling), 4, 2, 4);
  c.group = arithmetic;
  c.result = {data->y.bytes()};
  return c;
}

void add_lanes(Problem& problem, const Place& place, const LinearDataPtr& data) {
  const auto lanes = lanes_here(linear_lanes(), place);
  for (const LinearLane* lane : lanes) {
    Case c = linear_case(data, "linear " + std::string(lane->name), lane_ceiling("float32", lane->name), "float32");
    c.time.chosen = lane == lanes.back();
    c.call = [data, context = ExecContext{.pool = place.pool, .isa = lane->isa}](int set) mutable -> Status {
      linear(context, data->args(set));
      return {};
    };
    problem.cases.push_back(std::move(c));
  }
  Case c = linear_case(data, "linear reference", "", "float32");
  c.time.chosen = lanes.empty();
  leave_out_if_long(c);
  c.call = [data](int set) -> Status {
    linear_reference(data->args(set));
    return {};
  };
  problem.cases.push_back(std::move(c));
}

// As the op runs in each arithmetic.
void add_arithmetics(Problem& problem, const Place& place, const LinearDataPtr& data) {
  for (const auto& [arithmetic, name] : arithmetic_names()) {
    Case c = linear_case(data, "linear cuda " + std::string(name), std::string(name), name);
    c.time.chosen = true;
    c.call = [data, context = ExecContext{.pool = place.pool, .gpu = place.gpu, .arithmetic = arithmetic}](
                 int set) mutable -> Status {
      linear(context, data->args(set));
      return {};
    };
    problem.cases.push_back(std::move(c));
  }
}

}  // namespace

double scaled_mm_bytes(const Place& place, const KernelShape& s) {
  const int sets = weight_sets(place, s, 1);
  const double own = sets * (d(s.m * s.k) + d(s.n * (s.k + PackedInt8Weight::kDepth)) + 4 * d(s.m * s.n));
  return own + (place.cublaslt != nullptr ? cublaslt_bytes(s, sets) : 0);
}

Problem scaled_mm_problem(const Place& place, const KernelShape& s) {
  Problem problem{.cases = {}, .sets = weight_sets(place, s, 1), .memory = nullptr};
  const auto data = std::make_shared<ScaledMMData>(place, s, problem.sets);
  problem.memory = data;
  if (place.gpu == nullptr) {
    add_lanes(problem, place, data);
  } else {
    add_tiles(problem, place, data);
    add_cublaslt(problem, kScaledMM, place, s);
  }
  return problem;
}

double linear_bytes(const Place& place, const KernelShape& s) {
  const int sets = weight_sets(place, s, 2);
  const double own = sets * (4 * d(s.m * s.k) + 2 * d((s.n + PackedWeight::kPanel) * s.k) + 4 * d(s.m * s.n));
  return own + (place.cublaslt != nullptr ? cublaslt_bytes(s, sets) : 0);
}

Problem linear_problem(const Place& place, const KernelShape& s) {
  Problem problem{.cases = {}, .sets = weight_sets(place, s, 2), .memory = nullptr};
  const auto data = std::make_shared<LinearData>(place, s, problem.sets);
  problem.memory = data;
  if (place.gpu == nullptr) {
    add_lanes(problem, place, data);
  } else {
    add_arithmetics(problem, place, data);
    add_cublaslt(problem, kLinear, place, s);
  }
  return problem;
}

}  // namespace oasr::kernel_bench
