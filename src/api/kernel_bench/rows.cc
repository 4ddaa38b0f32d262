// Operations on rows, which move bytes: quantizing, norms.
#include "api/kernel_bench/problem.h"
#include "kernels/norm/op.h"
#include "kernels/quantize/norm.h"
#include "kernels/quantize/op.h"

namespace oasr::kernel_bench {
namespace {

using namespace kernels;

int row_sets(const Place& place, const KernelShape& s) { return sets_for(place, 4 * d(s.m * s.k)); }

struct RowsData {
  RowsData(const Place& place, const KernelShape& s, int sets)
      : shape(s),
        x(place, sets, std::span<const float>(some_floats(s.m * s.k, 31))),
        addend(place, sets, std::span<const float>(some_floats(s.m * s.k, 32))),
        factors(place, 1, std::span<const float>(some_scales(s.k, 33))),
        y(place, sets, s.m * s.k),
        q(place, sets, s.m * s.k),
        scale(place, sets, s.m) {}

  KernelShape shape;
  Sets<float> x, addend, factors, y;
  Sets<std::int8_t> q;
  Sets<float> scale;
};
using Data = std::shared_ptr<RowsData>;

// A way to run an operation in a context, and what it reads and writes.
struct Step {
  const char* name;
  double bytes;  // of an element of the rows
  void (*run)(ExecContext& context, RowsData& data, int set);
  void (*reference)(RowsData& data, int set);
  std::vector<std::span<const std::byte>> (*result)(RowsData& data);
};

QuantizePerTokenArgs per_token(RowsData& data, int set) {
  return {.x = data.x.at(set),
          .ldx = data.shape.k,
          .m = data.shape.m,
          .k = data.shape.k,
          .q = data.q.at(set),
          .ldq = data.shape.k,
          .scale = data.scale.at(set)};
}

QuantizeStaticArgs calibrated(RowsData& data, int set) {
  return {.x = data.x.at(set),
          .ldx = data.shape.k,
          .m = data.shape.m,
          .k = data.shape.k,
          .multiplier = data.factors.at(0),
          .q = data.q.at(set),
          .ldq = data.shape.k};
}

LayerNormArgs norm(RowsData& data, int set) {
  return {.x = data.x.at(set),
          .ldx = data.shape.k,
          .m = data.shape.m,
          .d = data.shape.k,
          .gamma = data.factors.at(0),
          .beta = data.factors.at(0),
          .y = data.y.at(set),
          .ldy = data.shape.k};
}

// addend: whether rows are added first; the sum goes to y.
LayerNormQuantArgs norm_quant(RowsData& data, int set, bool addend) {
  return {.x = data.x.at(set),
          .ldx = data.shape.k,
          .m = data.shape.m,
          .d = data.shape.k,
          .addend = addend ? data.addend.at(set) : nullptr,
          .ld_addend = data.shape.k,
          .sum = addend ? data.y.at(set) : nullptr,
          .ld_sum = data.shape.k,
          .gamma = data.factors.at(0),
          .beta = data.factors.at(0),
          .q = data.q.at(set),
          .ldq = data.shape.k,
          .scale = data.scale.at(set)};
}

std::vector<std::span<const std::byte>> int8_rows(RowsData& data) { return {data.q.bytes(), data.scale.bytes()}; }

// The numbers are finite: what a kernel reports of them is nothing.
void done(NotFinite found) { CHECK(!found, "finite rows"); }

const Step kPerToken = {
    "quantize_per_token", 5,
    [](ExecContext& context, RowsData& data, int set) { done(quantize_per_token(context, per_token(data, set))); },
    [](RowsData& data, int set) { done(quantize_per_token_reference(per_token(data, set))); }, int8_rows};
const Step kStatic = {
    "quantize_static", 5,
    [](ExecContext& context, RowsData& data, int set) { done(quantize_static(context, calibrated(data, set))); },
    [](RowsData& data, int set) { done(quantize_static_reference(calibrated(data, set))); },
    [](RowsData& data) { return std::vector<std::span<const std::byte>>{data.q.bytes()}; }};
const Step kNorm = {
    "layer_norm", 8,
    [](ExecContext& context, RowsData& data, int set) { layer_norm(context, norm(data, set)); },
    [](RowsData& data, int set) { layer_norm_reference(norm(data, set)); },
    [](RowsData& data) { return std::vector<std::span<const std::byte>>{data.y.bytes()}; }};
const Step kNormQuant = {
    "layer_norm_quant", 5,
    [](ExecContext& context, RowsData& data, int set) { done(layer_norm_quant(context, norm_quant(data, set, false))); },
    [](RowsData& data, int set) { done(layer_norm_quant_reference(norm_quant(data, set, false))); }, int8_rows};
const Step kAddNormQuant = {
    "add + layer_norm_quant", 13,
    [](ExecContext& context, RowsData& data, int set) { done(layer_norm_quant(context, norm_quant(data, set, true))); },
    [](RowsData& data, int set) { done(layer_norm_quant_reference(norm_quant(data, set, true))); },
    [](RowsData& data) {
      return std::vector<std::span<const std::byte>>{data.q.bytes(), data.scale.bytes(), data.y.bytes()};
    }};

Case row_case(const char* op, const Step& step, const Data& data, std::string_view runs) {
  Case c;
  c.time.op = op;
  c.time.shape = data->shape;
  c.time.kernel = std::string(step.name) + " " + std::string(runs);
  c.time.bytes = step.bytes * d(data->shape.m * data->shape.k);
  c.group = step.name;
  c.result = step.result(*data);
  return c;
}

template <class Lane>
void add_step(Problem& problem, const char* op, const Step& step, const Place& place, const Data& data,
              std::span<const Lane> table) {
  const auto add = [&](std::string_view runs, ExecContext context, bool chosen) {
    Case& c = problem.cases.emplace_back(row_case(op, step, data, runs));
    c.time.chosen = chosen;
    c.call = [data, context, run = step.run](int set) mutable -> Status {
      run(context, *data, set);
      return {};
    };
  };
  if (place.gpu != nullptr) return add("cuda", {.pool = place.pool, .gpu = place.gpu}, true);
  const auto lanes = lanes_here(table, place);
  for (const Lane* lane : lanes) add(lane->name, {.pool = place.pool, .isa = lane->isa}, lane == lanes.back());
  Case& c = problem.cases.emplace_back(row_case(op, step, data, "reference"));
  c.time.chosen = lanes.empty();
  c.call = [data, reference = step.reference](int set) -> Status {
    reference(*data, set);
    return {};
  };
}

Problem rows_problem(const Place& place, const KernelShape& s, Data& data) {
  Problem problem{.cases = {}, .sets = row_sets(place, s), .memory = nullptr};
  data = std::make_shared<RowsData>(place, s, problem.sets);
  problem.memory = data;
  return problem;
}

}  // namespace

double rows_bytes(const Place& place, const KernelShape& s) { return row_sets(place, s) * 13.0 * d(s.m * s.k); }

Problem quantize_problem(const Place& place, const KernelShape& s) {
  Data data;
  Problem problem = rows_problem(place, s, data);
  for (const Step* step : {&kPerToken, &kStatic}) add_step(problem, "quantize", *step, place, data, quantize_lanes());
  return problem;
}

Problem norm_problem(const Place& place, const KernelShape& s) {
  Data data;
  Problem problem = rows_problem(place, s, data);
  ExecContext context{.pool = place.pool, .isa = place.isa, .gpu = place.gpu};
  layer_norm_quant_reserve(context, s.k);
  add_step(problem, "norm", kNorm, place, data, layer_norm_lanes());
  for (const Step* step : {&kNormQuant, &kAddNormQuant}) {
    add_step(problem, "norm", *step, place, data, layer_norm_quant_lanes());
  }
  return problem;
}

}  // namespace oasr::kernel_bench
