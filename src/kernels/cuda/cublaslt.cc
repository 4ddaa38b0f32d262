#include "kernels/cuda/cublaslt.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <compare>
#include <limits>
#include <map>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/check.h"

namespace oasr::kernels {
namespace {

constexpr const char* kWhere = "cublaslt";
constexpr std::size_t kWorkspace = 32 << 20;  // what its documentation advises for the largest cards
constexpr std::int64_t kAligned = 16;

// The functions of the library that are called here.
struct Library {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtGetVersion) version = nullptr;
  decltype(&cublasLtGetStatusName) status_name = nullptr;
  decltype(&cublasLtMatmulDescCreate) create_product = nullptr;
  decltype(&cublasLtMatmulDescDestroy) destroy_product = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) set_product = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) create_layout = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) propose = nullptr;
  decltype(&cublasLtMatmul) multiply = nullptr;
};

template <class Function>
bool find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  return function != nullptr;
}

Result<Library> load_library() {
  // Never closed: the library keeps state of the driver's until the process ends. Versions 12 and 13 have the
  // functions and structures that the toolkit's header of either declares.
  void* handle = nullptr;
  for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12"}) {
    if (handle == nullptr) handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  constexpr const char* kRemedy =
      "install cuBLAS of CUDA 13 or 12, name its folder in LD_LIBRARY_PATH, or use a kernel of oasr's own";
  if (handle == nullptr) {
    return unexpected(ErrorCode::unsupported, "neither libcublasLt.so.13 nor libcublasLt.so.12 can be loaded",
                      kWhere, kRemedy);
  }
  Library l;
  const bool found =
      find(handle, "cublasLtCreate", l.create) && find(handle, "cublasLtDestroy", l.destroy) &&
      find(handle, "cublasLtGetVersion", l.version) && find(handle, "cublasLtGetStatusName", l.status_name) &&
      find(handle, "cublasLtMatmulDescCreate", l.create_product) &&
      find(handle, "cublasLtMatmulDescDestroy", l.destroy_product) &&
      find(handle, "cublasLtMatmulDescSetAttribute", l.set_product) &&
      find(handle, "cublasLtMatrixLayoutCreate", l.create_layout) &&
      find(handle, "cublasLtMatrixLayoutDestroy", l.destroy_layout) &&
      find(handle, "cublasLtMatmulPreferenceCreate", l.create_preference) &&
      find(handle, "cublasLtMatmulPreferenceDestroy", l.destroy_preference) &&
      find(handle, "cublasLtMatmulPreferenceSetAttribute", l.set_preference) &&
      find(handle, "cublasLtMatmulAlgoGetHeuristic", l.propose) && find(handle, "cublasLtMatmul", l.multiply);
  if (!found) {
    return unexpected(ErrorCode::unsupported, "the libcublasLt that was found lacks functions of cuBLASLt",
                      kWhere, kRemedy);
  }
  return l;
}

const Result<Library>& library() {
  static const Result<Library> loaded = load_library();
  return loaded;
}

Unexpected failed(const Library& l, cublasStatus_t status, const char* doing) {
  return unexpected(status == CUBLAS_STATUS_NOT_SUPPORTED ? ErrorCode::unsupported : ErrorCode::internal,
                    fmt::format("cuBLASLt failed: {}: {}", doing, l.status_name(status)), kWhere,
                    "use a kernel of oasr's own");
}

void check(cudaError_t status, const char* doing) {
  if (status == cudaSuccess) return;
  throw GpuError(fmt::format("the GPU failed: {}: {} ({})", doing, cudaGetErrorString(status),
                             cudaGetErrorName(status)));
}

// What the library makes and destroys.
template <class Pointer>
using Owned = std::unique_ptr<std::remove_pointer_t<Pointer>, cublasStatus_t (*)(Pointer)>;
using Operation = Owned<cublasLtMatmulDesc_t>;
using Layout = Owned<cublasLtMatrixLayout_t>;
using Preference = Owned<cublasLtMatmulPreference_t>;

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "making an event"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "recording an event"); }
  float since(const Event& begin) const {
    float milliseconds = 0.0f;
    check(cudaEventSynchronize(event_), "waiting for an event");
    check(cudaEventElapsedTime(&milliseconds, begin.event_, event_), "reading events");
    return milliseconds;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

struct Numbers {
  cudaDataType_t operands, output, scale;
  cublasComputeType_t sums;
  std::int64_t bytes;  // of an operand
};
Numbers numbers_of(CublasLt::Type type) {
  switch (type) {
    case CublasLt::Type::int8:
      return {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I, 1};
    case CublasLt::Type::fp8_e4m3:
      return {CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, 1};
    case CublasLt::Type::float16:
      return {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 2};
    case CublasLt::Type::bfloat16:
      return {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, 2};
  }
  CHECK(false, "a type of cuBLASLt");
}

// What a plan is made for.
struct Shape {
  CublasLt::Type type;
  std::int64_t m, n, k, stride_a, stride_w;
  std::uint32_t alignment;  // of all memory
  auto operator<=>(const Shape&) const = default;
};

struct Plan {
  Operation operation;
  // In the library's order, columns first: a product of w, transposed, and a, whose columns are the rows of
  // y.
  Layout w, a, y;
  cublasLtMatmulAlgo_t kernel;
};

struct Operands {
  const void *a, *w;
  void* y;
};

std::uint32_t alignment_of(const Operands& at) {
  const auto all = reinterpret_cast<std::uintptr_t>(at.a) | reinterpret_cast<std::uintptr_t>(at.w) |
                   reinterpret_cast<std::uintptr_t>(at.y);
  return all % 256 == 0 ? 256 : (all % kAligned == 0 ? kAligned : 1);
}

Status check_shape(const Shape& shape, std::int64_t bytes) {
  if (!CublasLt::takes(shape.type, shape.n, shape.k) || shape.m < 1) {
    return unexpected(
        ErrorCode::invalid_argument,
        fmt::format("cuBLASLt does not take a product of {} rows by {} x {}", shape.m, shape.n, shape.k),
        kWhere, "use a kernel of oasr's own");
  }
  const bool aligned = shape.alignment >= kAligned && shape.stride_a * bytes % kAligned == 0 &&
                       shape.stride_w * bytes % kAligned == 0;
  if (!aligned || shape.stride_a < shape.k || shape.stride_w < shape.k) {
    return unexpected(ErrorCode::invalid_argument, "cuBLASLt takes rows that begin at multiples of 16 bytes",
                      kWhere, "use a kernel of oasr's own");
  }
  return {};
}

}  // namespace

struct CublasLt::State {
  State(Gpu& gpu, const Library& library, Choice choice) : gpu(gpu), library(library), choice(choice) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    plans.clear();
    if (handle != nullptr) library.destroy(handle);
    if (workspace != nullptr) gpu.free(workspace);
  }

  Result<Plan> describe(const Shape& shape) const;
  Result<int> propose(const Shape& shape, const Plan& plan,
                      std::array<cublasLtMatmulHeuristicResult_t, kProposals>& proposals) const;
  Result<Plan*> plan(const Shape& shape, const Operands& at, cudaStream_t stream);
  cublasStatus_t run(const Shape& shape, const Plan& plan, const cublasLtMatmulAlgo_t& kernel,
                     const Operands& at, cudaStream_t stream) const;
  float time(const Shape& shape, const Plan& plan, const cublasLtMatmulAlgo_t& kernel, const Operands& at,
             cudaStream_t stream) const;

  Gpu& gpu;
  const Library& library;
  const Choice choice;
  cublasLtHandle_t handle = nullptr;
  std::byte* workspace = nullptr;
  std::map<Shape, Plan> plans;
};

// A plan without its kernel.
Result<Plan> CublasLt::State::describe(const Shape& shape) const {
  const Numbers numbers = numbers_of(shape.type);
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t w = nullptr, a = nullptr, y = nullptr;
  cublasStatus_t status = library.create_product(&operation, numbers.sums, numbers.scale);
  const auto layout = [&](cublasLtMatrixLayout_t* to, cudaDataType_t type, std::int64_t rows,
                          std::int64_t columns, std::int64_t stride) {
    if (status != CUBLAS_STATUS_SUCCESS) return;
    status = library.create_layout(to, type, static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(columns), stride);
  };
  layout(&w, numbers.operands, shape.k, shape.n, shape.stride_w);
  layout(&a, numbers.operands, shape.k, shape.m, shape.stride_a);
  layout(&y, numbers.output, shape.n, shape.m, shape.n);
  Plan plan{.operation = Operation(operation, library.destroy_product),
            .w = Layout(w, library.destroy_layout),
            .a = Layout(a, library.destroy_layout),
            .y = Layout(y, library.destroy_layout),
            .kernel = {}};
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    if (status == CUBLAS_STATUS_SUCCESS)
      status = library.set_product(operation, attribute, &value, sizeof(value));
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
  if (shape.type == Type::fp8_e4m3) set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{1});
  if (status != CUBLAS_STATUS_SUCCESS) return failed(library, status, "describing a product");
  return plan;
}

// The kernels that the library would use, the best guess first; how many.
Result<int> CublasLt::State::propose(
    const Shape& shape, const Plan& plan,
    std::array<cublasLtMatmulHeuristicResult_t, kProposals>& proposals) const {
  cublasLtMatmulPreference_t made = nullptr;
  cublasStatus_t status = library.create_preference(&made);
  const Preference preference(made, library.destroy_preference);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    if (status == CUBLAS_STATUS_SUCCESS)
      status = library.set_preference(made, attribute, &value, sizeof(value));
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kWorkspace});
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(attribute, shape.alignment);
  }
  int found = 0;
  if (status == CUBLAS_STATUS_SUCCESS) {
    status =
        library.propose(handle, plan.operation.get(), plan.w.get(), plan.a.get(), plan.y.get(), plan.y.get(),
                        made, choice == Choice::first ? 1 : kProposals, proposals.data(), &found);
  }
  if (status != CUBLAS_STATUS_SUCCESS) return failed(library, status, "choosing a kernel");
  if (found == 0) return failed(library, CUBLAS_STATUS_NOT_SUPPORTED, "choosing a kernel");
  return found;
}

cublasStatus_t CublasLt::State::run(const Shape& shape, const Plan& plan, const cublasLtMatmulAlgo_t& kernel,
                                    const Operands& at, cudaStream_t stream) const {
  // Of the type of the sums.
  const std::int32_t one_int = 1, zero_int = 0;
  const float one_float = 1.0f, zero_float = 0.0f;
  const bool ints = shape.type == Type::int8;
  return library.multiply(handle, plan.operation.get(),
                          ints ? static_cast<const void*>(&one_int) : &one_float, at.w, plan.w.get(), at.a,
                          plan.a.get(), ints ? static_cast<const void*>(&zero_int) : &zero_float, at.y,
                          plan.y.get(), at.y, plan.y.get(), &kernel, workspace, kWorkspace, stream);
}

// Milliseconds of kTimed products, the fastest of kRounds; infinity where the kernel does not run.
float CublasLt::State::time(const Shape& shape, const Plan& plan, const cublasLtMatmulAlgo_t& kernel,
                            const Operands& at, cudaStream_t stream) const {
  constexpr int kRounds = 3, kTimed = 10;
  constexpr float kNever = std::numeric_limits<float>::infinity();
  if (run(shape, plan, kernel, at, stream) != CUBLAS_STATUS_SUCCESS) return kNever;
  Event begin, end;
  float best = kNever;
  for (int round = 0; round < kRounds; ++round) {
    begin.record(stream);
    for (int i = 0; i < kTimed; ++i) {
      if (run(shape, plan, kernel, at, stream) != CUBLAS_STATUS_SUCCESS) return kNever;
    }
    end.record(stream);
    best = std::min(best, end.since(begin));
  }
  return best;
}

Result<Plan*> CublasLt::State::plan(const Shape& shape, const Operands& at, cudaStream_t stream) {
  if (const auto known = plans.find(shape); known != plans.end()) return &known->second;
  Plan made = TRY(describe(shape));
  std::array<cublasLtMatmulHeuristicResult_t, kProposals> proposals;
  const int found = TRY(propose(shape, made, proposals));
  made.kernel = proposals[0].algo;
  if (found > 1) {
    float best = std::numeric_limits<float>::infinity();
    for (int i = 0; i < found; ++i) {
      const auto& kernel = proposals[static_cast<std::size_t>(i)].algo;
      const float milliseconds = time(shape, made, kernel, at, stream);
      if (milliseconds >= best) continue;
      best = milliseconds;
      made.kernel = kernel;
    }
  }
  return &plans.emplace(shape, std::move(made)).first->second;
}

Result<std::unique_ptr<CublasLt>> CublasLt::open(Gpu& gpu, Choice choice) {
  const Result<Library>& found = library();
  if (!found) return unexpected(found.error());
  auto state = std::make_unique<State>(gpu, *found, choice);
  std::ignore = gpu.stream();  // makes its card the current one, on which the library works
  const cublasStatus_t status = found->create(&state->handle);
  if (status != CUBLAS_STATUS_SUCCESS) return failed(*found, status, "opening it");
  state->workspace = gpu.allocate(kWorkspace);
  return std::unique_ptr<CublasLt>(new CublasLt(std::move(state)));
}

CublasLt::CublasLt(std::unique_ptr<State> state) : state_(std::move(state)) {}
CublasLt::~CublasLt() = default;

std::string CublasLt::version() const {
  const std::size_t number = state_->library.version();
  return fmt::format("{}.{}.{}", number / 10'000, number / 100 % 100, number % 100);
}

Status CublasLt::product(Type type, std::int64_t m, std::int64_t n, std::int64_t k, const void* a,
                         const void* w, void* y, Strides strides) {
  const Operands at{.a = a, .w = w, .y = y};
  const Shape shape{.type = type,
                    .m = m,
                    .n = n,
                    .k = k,
                    .stride_a = strides.a == 0 ? k : strides.a,
                    .stride_w = strides.w == 0 ? k : strides.w,
                    .alignment = alignment_of(at)};
  TRY(check_shape(shape, numbers_of(type).bytes));
  const auto stream = static_cast<cudaStream_t>(state_->gpu.foreign("cublaslt"));
  const Plan* plan = TRY(state_->plan(shape, at, stream));
  const cublasStatus_t status = state_->run(shape, *plan, plan->kernel, at, stream);
  if (status != CUBLAS_STATUS_SUCCESS) return failed(state_->library, status, "multiplying");
  return {};
}

}  // namespace oasr::kernels
