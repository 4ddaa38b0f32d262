#include "kernels/mel/gpu_mel.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <span>
#include <utility>

#include "kernels/mel/cuda.h"

namespace oasr::kernels {
namespace {

constexpr std::size_t kPiece = 8192;            // frames at a time, but for
constexpr std::size_t kPieceSamples = 1 << 20;  // samples at a time, where frames are far apart

std::size_t samples_of(const MelRecipe& recipe, std::size_t frames) {
  return (frames - 1) * recipe.hop + recipe.window;
}

std::size_t piece_of(const MelRecipe& recipe) {
  return std::clamp<std::size_t>(kPieceSamples / recipe.hop, 1, kPiece);
}

template <class T>
Memory placed(Gpu& gpu, const std::vector<T>& values) {
  Memory memory(&gpu, values.size() * sizeof(T));
  gpu.upload(memory.data(), values.data(), values.size() * sizeof(T));
  return memory;
}

template <class T>
const T* at(const Memory& memory) {
  return reinterpret_cast<const T*>(memory.data());
}

}  // namespace

// Tables and work space of a queue.
struct GpuMel::Queue {
  Queue(std::unique_ptr<Gpu> with, const MelRecipe& recipe) : gpu(std::move(with)), host(gpu.get()) {
    const MelTables tables(recipe);
    window = placed(*gpu, tables.window);
    roots = placed(*gpu, tables.roots);
    spans = placed(*gpu, tables.filters);
    filter_weights = placed(*gpu, tables.filter_weights);
    const std::size_t most = piece_of(recipe);
    samples = Memory(gpu.get(), samples_of(recipe, most) * sizeof(float));
    results = Memory(gpu.get(), most * (recipe.filters.size() + 1) * sizeof(float));
    host.room(most * (recipe.filters.size() + 1));  // all at once: page-locked memory is slow to get
  }

  std::unique_ptr<Gpu> gpu;
  Memory window, roots, spans, filter_weights;
  Memory samples;
  Memory results;   // greatest [piece], then logs [piece, filters]
  HostFloats host;  // that they are copied to
};

// A queue for the time of a call. One that a failure has hit is closed.
class GpuMel::Lease {
 public:
  explicit Lease(GpuMel& owner) : owner_(owner), queue_(owner.take()) {}
  ~Lease() { owner_.give_back(done_ ? std::move(queue_) : nullptr); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  Queue& queue() { return *queue_; }
  void done() { done_ = true; }

 private:
  GpuMel& owner_;
  std::unique_ptr<Queue> queue_;
  bool done_ = false;
};

bool GpuMel::serves(const MelRecipe& recipe) { return recipe.transform <= kMostMelTransform; }

Result<std::unique_ptr<GpuMel>> GpuMel::open(int gpu, const MelRecipe& recipe) {
  CHECK(serves(recipe), "a recipe that the kernel serves");
  std::unique_ptr<GpuMel> mel(new GpuMel(gpu, recipe));
  auto queue = TRY(mel->open_queue());
  mel->free_.push_back(std::move(queue));
  mel->open_ = 1;
  return mel;
}

GpuMel::GpuMel(int gpu, const MelRecipe& recipe) : index_(gpu), recipe_(recipe) {}
GpuMel::~GpuMel() = default;

Result<std::unique_ptr<GpuMel::Queue>> GpuMel::open_queue() {
  auto gpu = TRY(Gpu::open(index_));
  return std::make_unique<Queue>(std::move(gpu), recipe_);
}

std::unique_ptr<GpuMel::Queue> GpuMel::take() {
  std::unique_lock lock(mutex_);
  while (true) {
    returned_.wait(lock, [&] { return !free_.empty() || open_ < most_; });
    if (!free_.empty()) {
      auto queue = std::move(free_.back());
      free_.pop_back();
      return queue;
    }
    ++open_;
    lock.unlock();
    std::unique_ptr<Queue> queue;
    std::exception_ptr failure;
    try {
      auto opened = open_queue();
      if (!opened) throw GpuError(opened.error().message());
      queue = std::move(*opened);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (queue != nullptr) return queue;
    --open_;
    most_ = open_ > 0 ? open_ : kMostQueues;  // those that are there do; without any the next caller tries again
    returned_.notify_all();                   // for whom that is news
    if (open_ == 0) std::rethrow_exception(failure);
  }
}

// null: the queue is no more.
void GpuMel::give_back(std::unique_ptr<Queue> queue) {
  {
    const std::lock_guard lock(mutex_);
    if (queue != nullptr) {
      free_.push_back(std::move(queue));
    } else {
      --open_;
    }
  }
  returned_.notify_one();
}

void GpuMel::compute(const float* samples, std::size_t frames, const MelOutput& out) {
  Lease lease(*this);
  const std::size_t filters = recipe_.filters.size(), most = piece_of(recipe_);
  for (std::size_t begin = 0; begin < frames; begin += most) {
    compute_piece(lease.queue(), samples + begin * recipe_.hop, std::min(most, frames - begin),
                  {.logs = out.logs == nullptr ? nullptr : out.logs + begin * filters,
                   .greatest = out.greatest == nullptr ? nullptr : out.greatest + begin});
  }
  lease.done();
}

void GpuMel::compute_piece(Queue& queue, const float* samples, std::size_t frames, const MelOutput& out) {
  Gpu& gpu = *queue.gpu;
  const std::size_t filters = recipe_.filters.size();
  gpu.upload(queue.samples.data(), samples, samples_of(recipe_, frames) * sizeof(float));
  float* greatest = reinterpret_cast<float*>(queue.results.data());
  const bool logs = out.logs != nullptr;
  mel_frames_cuda(gpu, {.samples = at<float>(queue.samples),
                        .frames = static_cast<std::int64_t>(frames),
                        .hop = static_cast<std::int64_t>(recipe_.hop),
                        .window = static_cast<unsigned>(recipe_.window),
                        .transform = static_cast<unsigned>(recipe_.transform),
                        .filters = static_cast<unsigned>(filters),
                        .emphasised = recipe_.emphasised,
                        .scale = recipe_.scale,
                        .floor = recipe_.floor,
                        .log = recipe_.log,
                        .window_weights = at<float>(queue.window),
                        .roots = at<fourier::Twiddle>(queue.roots),
                        .spans = at<MelTables::Filter>(queue.spans),
                        .filter_weights = at<float>(queue.filter_weights),
                        .logs = logs ? greatest + frames : nullptr,
                        .greatest = greatest});
  const std::span<float> host = queue.host.room(frames * (logs ? filters + 1 : 1));
  gpu.download(host.data(), greatest, host.size_bytes());
  if (out.greatest != nullptr) std::memcpy(out.greatest, host.data(), frames * sizeof(float));
  if (logs) std::memcpy(out.logs, host.data() + frames, frames * filters * sizeof(float));
}

void GpuMel::fail_launch() {
  const std::lock_guard lock(mutex_);
  CHECK(!free_.empty(), "a queue that nobody uses");
  free_.back()->gpu->fail_launch(0);
}

}  // namespace oasr::kernels
