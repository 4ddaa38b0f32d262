#include <algorithm>

#include "kernels/attention/cuda.h"
#include "kernels/attention/few_queries.cuh"
#include "kernels/attention/many_queries.cuh"
#include "kernels/attention/mixed.h"

namespace oasr::kernels {
namespace {

using cuda::Sequences;

// The kernels: one query by a block, a few, some more, or many; mixed precision has its own. Blocks of few queries are
// many and done soon; those of more read a key for all of them once.
constexpr int kFew = 4, kSome = 8;
enum class Form { one, few, some, many, mixed };
constexpr Form kForms[] = {Form::one, Form::few, Form::some, Form::many};
constexpr int queries_of(Form form) {
  switch (form) {
    case Form::one: return 1;
    case Form::few: return kFew;
    case Form::some: return kSome;
    default: return cuda::kTile;
  }
}

// Bytes of shared memory that the kernels have without asking, at most.
constexpr std::size_t kStatic = 1024;

// Whether tiles would take the sequence, with `shared` bytes of shared memory. Their unused rows are worth it from some
// queries on.
bool fits_tiles(const AttentionArgs& args, std::size_t shared) {
  constexpr std::int64_t kMany = 16;
  constexpr int kDepth = 512;  // at most, of queries in shared memory
  const int depth = args.kv->head_dim * (args.positions != nullptr ? 2 : 1);
  const std::size_t bytes =
      args.kv->storage == DType::f32 ? cuda::many_shared<float>(depth) : cuda::many_shared<Half>(depth);
  return args.queries >= kMany && depth <= kDepth && bytes <= shared && args.weights == nullptr;
}
// How the sequences of a call are spread over the kernels.
struct Choice {
  bool mixed;  // precision, where it is taken
  bool tiles;  // for those that fit
  bool some;   // for those of several queries that are no tiles'
  std::size_t shared;  // bytes of shared memory that a launch may ask for
};
// Whether there are enough of them to keep the GPU busy: a block of a few queries is done much sooner.
bool worth_tiles(const Gpu& gpu, std::span<const AttentionArgs> sequences, bool mixed, std::size_t shared) {
  std::int64_t blocks = 0;
  for (const AttentionArgs& args : sequences) {
    if (fits_tiles(args, shared) && !(mixed && args.mixed)) blocks += args.kv->heads * cuda::divide_up(args.queries, cuda::kTile);
  }
  return 2 * blocks >= gpu.info().multiprocessors;
}
// Whether there are more blocks of few queries than run at once.
bool worth_some(const Gpu& gpu, std::span<const AttentionArgs> sequences, Choice choice) {
  std::int64_t blocks = 0;
  for (const AttentionArgs& args : sequences) {
    const bool others = args.queries == 1 || (choice.mixed && args.mixed) || (choice.tiles && fits_tiles(args, choice.shared));
    if (!others) blocks += args.kv->heads * cuda::divide_up(args.queries, kFew);
  }
  return blocks > gpu.info().multiprocessors;
}
Form form_of(const AttentionArgs& args, Choice choice) {
  if (choice.mixed && args.mixed) return Form::mixed;
  if (args.queries == 1) return Form::one;
  if (choice.tiles && fits_tiles(args, choice.shared)) return Form::many;
  return choice.some && args.queries > kFew ? Form::some : Form::few;
}

bool alike(const KvCache& a, const KvCache& b) {
  return a.heads == b.heads && a.head_dim == b.head_dim && a.storage == b.storage;
}

// The sequences of one launch: those of one form and alike, up to the first that is not; `next` becomes the
// one to go on from.
struct Batch {
  Sequences sequences;
  DType storage = DType::f32;
  std::int64_t longest = 0;  // positions
};
Batch take(std::span<const AttentionArgs> all, Form form, Choice choice, std::size_t& next) {
  Batch batch;
  const KvCache* first = nullptr;
  for (; next < all.size() && batch.sequences.count < Sequences::kMost; ++next) {
    const AttentionArgs& args = all[next];
    if (form_of(args, choice) != form || args.queries == 0) continue;
    if (first != nullptr && !alike(*first, *args.kv)) break;
    first = args.kv;
    batch.sequences.add(args, queries_of(form));
    batch.storage = args.kv->storage;
    batch.longest = std::max(batch.longest, args.kv->length);
  }
  return batch;
}

constexpr int kDim = 64;  // of the heads of all models so far: kernels of their own

cuda::FewLayout few_layout(const Gpu& gpu, const Batch& batch, std::size_t bytes, int queries, std::size_t shared) {
  constexpr std::int64_t kAlone = 512;  // positions whose scores are not worth a kernel of their own
  const bool room =
      2 * batch.sequences.items <= gpu.info().multiprocessors;  // for blocks that compute scores only
  const bool hands_over = room && batch.longest > kAlone && batch.sequences.dim == kDim;
  return cuda::few_layout(bytes, queries, batch.sequences.dim, batch.longest, hands_over, shared);
}

bool any_positions(const Batch& batch) {
  return std::any_of(batch.sequences.at, batch.sequences.at + batch.sequences.count,
                     [](const cuda::Sequence& s) { return s.positions != nullptr; });
}

template <class T, int kQueries>
void run_few(Gpu& gpu, const Batch& batch, std::size_t shared) {
  using cuda::Rows;
  const Sequences& sequences = batch.sequences;
  auto [plan, rows] = few_layout(gpu, batch, sizeof(T), kQueries, shared);
  if (rows != Rows::inside) {
    const std::int64_t floats = std::int64_t{sequences.items} * kQueries * plan.stride;
    plan.outer = reinterpret_cast<float*>(gpu.scratch(static_cast<std::size_t>(floats) * sizeof(float)));
  }
  if (rows == Rows::handed) {
    cuda::launch(gpu, "attention", cuda::few_scores<T, kQueries, kDim>,
                 {.x = sequences.items, .y = cuda::divide_up(batch.longest, cuda::kScoreThreads)},
                 cuda::kScoreThreads, cuda::scores_shared<T>(any_positions(batch) ? 2 : 1, kQueries, kDim),
                 sequences.pass(gpu), plan.outer, plan.stride);
  }
  const auto kernel = rows == Rows::outside   ? cuda::few_queries<T, kQueries, 0, Rows::outside>
                      : rows == Rows::handed  ? cuda::few_queries<T, kQueries, kDim, Rows::handed>
                      : sequences.dim == kDim ? cuda::few_queries<T, kQueries, kDim, Rows::inside>
                                              : cuda::few_queries<T, kQueries, 0, Rows::inside>;
  cuda::launch(gpu, "attention", kernel, {.x = sequences.items}, cuda::kFewThreads,
               cuda::few_shared(sizeof(T), plan, rows, kQueries, sequences.dim), sequences.pass(gpu), plan);
}

template <class T>
void run_many(Gpu& gpu, const Batch& batch) {
  const std::int64_t rows = cuda::divide_up(batch.longest, cuda::kTile) * cuda::kTile;
  // Blocks that a GPU holds at a time, as long as their scores take no more than 1 GiB.
  const std::int64_t slot = rows * cuda::kTile * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t blocks = std::max<std::int64_t>(
      1, std::min({std::int64_t{batch.sequences.items}, std::int64_t{3} * gpu.info().multiprocessors,
                   (std::int64_t{1} << 30) / slot}));
  auto* scores = reinterpret_cast<float*>(gpu.scratch(static_cast<std::size_t>(blocks * slot)));
  cuda::launch(gpu, "attention", cuda::many_queries<T>, {.x = blocks}, cuda::kManyThreads,
               cuda::many_shared<T>(batch.sequences.dim * (any_positions(batch) ? 2 : 1)),
               batch.sequences.pass(gpu), scores, rows);
}

template <class T>
void run(Gpu& gpu, Form form, const Batch& batch, std::size_t shared) {
  switch (form) {
    case Form::one:
      return run_few<T, 1>(gpu, batch, shared);
    case Form::few:
      return run_few<T, kFew>(gpu, batch, shared);
    case Form::some:
      return run_few<T, kSome>(gpu, batch, shared);
    case Form::many:
      return run_many<T>(gpu, batch);
    case Form::mixed:
      break;  // attention_mixed_cuda()
  }
}

}  // namespace

void attention_cuda(Gpu& gpu, std::span<const AttentionArgs> sequences, Arithmetic arithmetic) {
  attention_cuda(gpu, sequences, arithmetic, gpu.info().shared_bytes);
}

void attention_cuda(Gpu& gpu, std::span<const AttentionArgs> sequences, Arithmetic arithmetic, std::size_t all_shared) {
  const std::size_t shared = all_shared - kStatic;
  const bool mixed = arithmetic != Arithmetic::float32;
  if (mixed) attention_mixed_cuda(gpu, sequences, arithmetic);
  Choice choice{.mixed = mixed, .tiles = worth_tiles(gpu, sequences, mixed, shared), .some = false, .shared = shared};
  choice.some = worth_some(gpu, sequences, choice);
  for (const Form form : kForms) {
    for (std::size_t next = 0; next < sequences.size();) {
      const Batch batch = take(sequences, form, choice, next);
      if (batch.sequences.count == 0) continue;
      if (batch.storage == DType::f32) {
        run<float>(gpu, form, batch, shared);
      } else {
        run<Half>(gpu, form, batch, shared);
      }
    }
  }
}

}  // namespace oasr::kernels
