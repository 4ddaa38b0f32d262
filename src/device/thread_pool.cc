#include "device/thread_pool.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "base/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace oasr {
namespace {

// Long enough to span the gap between two kernels of a decoder step, short enough to be no burden
// for a neighbour on the same core.
constexpr std::chrono::microseconds kSpin{40};
constexpr std::size_t kCacheLine = 64;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

// Spins until done() or for kSpin; then false.
template <class Done>
bool spin_until(Done done) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

struct AlignedFree {
  void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{kCacheLine}); }
};

struct alignas(kCacheLine) Scratch {
  std::unique_ptr<std::byte[], AlignedFree> data;
  std::size_t size = 0;
};

}  // namespace

struct ThreadPool::State {
  explicit State(int threads) : scratch(static_cast<std::size_t>(threads)) {}

  // Takes one item of the loop; nothing when all are taken.
  std::optional<std::int64_t> claim();
  // Takes items until none is left.
  void work(int thread);
  void worker(int thread);
  void end();

  // The loop that runs now. `left` is published last and taken from by compare-and-swap: low 32
  // bits, items not yet taken; high 32 bits, the loop's number. A worker reads `items` and `body`
  // only after it took an item, and the caller can not return before that item is done, so a
  // worker that wakes late finds nothing or a whole new loop.
  alignas(kCacheLine) std::atomic<std::uint64_t> left{0};
  alignas(kCacheLine) std::atomic<std::uint32_t> unfinished{0};
  alignas(kCacheLine) std::atomic<std::uint32_t> signal{0};  // counts loops; workers sleep on it
  std::atomic<bool> stop{false};
  std::int64_t items = 0;
  const Body* body = nullptr;

  std::mutex failure_mutex;
  std::exception_ptr failure;
  std::atomic<bool> busy{false};

  std::vector<Scratch> scratch;
  std::vector<std::thread> workers;
};

namespace {

// The pool and thread number of the body that this thread is running: makes nested loops inline.
struct Running {
  const void* pool = nullptr;
  int thread = 0;
};
thread_local Running running;

}  // namespace

std::optional<std::int64_t> ThreadPool::State::claim() {
  std::uint64_t seen = left.load(std::memory_order_acquire);
  while ((seen & 0xFFFFFFFFu) != 0) {
    if (left.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
      return items - static_cast<std::int64_t>(seen & 0xFFFFFFFFu);
    }
  }
  return std::nullopt;
}

void ThreadPool::State::work(int thread) {
  const Running outer = running;
  running = {this, thread};
  while (const auto item = claim()) {
    try {
      (*body)(*item, thread);
    } catch (...) {
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
    }
    if (unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished.notify_one();
  }
  running = outer;
}

void ThreadPool::State::worker(int thread) {
  std::uint32_t seen = 0;
  while (true) {
    const auto changed = [&] { return signal.load(std::memory_order_acquire) != seen; };
    if (!spin_until(changed)) signal.wait(seen, std::memory_order_acquire);
    seen = signal.load(std::memory_order_acquire);
    if (stop.load(std::memory_order_acquire)) return;
    work(thread);
  }
}

ThreadPool::ThreadPool(int threads) {
  CHECK(threads >= 1, "a pool has at least the caller's thread");
  state_ = std::make_unique<State>(threads);
  try {
    for (int t = 1; t < threads; ++t) {
      state_->workers.emplace_back([state = state_.get(), t] { state->worker(t); });
    }
  } catch (...) {  // the system has no thread left
    state_->end();
    throw;
  }
}

ThreadPool::~ThreadPool() { state_->end(); }

void ThreadPool::State::end() {
  stop.store(true, std::memory_order_release);
  signal.fetch_add(1, std::memory_order_acq_rel);
  signal.notify_all();
  for (std::thread& worker : workers) worker.join();
}

int ThreadPool::threads() const { return static_cast<int>(state_->scratch.size()); }

void ThreadPool::parallel_for(std::int64_t items, Body body) {
  CHECK(items <= std::numeric_limits<std::uint32_t>::max(), "too many items for one loop");
  State& s = *state_;
  const bool nested = running.pool == &s;
  if (nested || items <= 1 || s.workers.empty()) {
    const Running outer = running;
    running = {&s, nested ? outer.thread : 0};
    try {
      for (std::int64_t item = 0; item < items; ++item) body(item, running.thread);
    } catch (...) {
      running = outer;
      throw;
    }
    running = outer;
    return;
  }
  CHECK(!s.busy.exchange(true), "two threads use one pool at a time");
  s.items = items;
  s.body = &body;
  s.unfinished.store(static_cast<std::uint32_t>(items), std::memory_order_relaxed);
  s.left.store(static_cast<std::uint64_t>(items), std::memory_order_release);
  s.signal.fetch_add(1, std::memory_order_acq_rel);
  s.signal.notify_all();

  s.work(0);
  // Only items that a worker has begun can be missing now.
  const auto done = [&] { return s.unfinished.load(std::memory_order_acquire) == 0; };
  if (!spin_until(done)) {
    for (auto n = s.unfinished.load(std::memory_order_acquire); n != 0;
         n = s.unfinished.load(std::memory_order_acquire)) {
      s.unfinished.wait(n, std::memory_order_acquire);
    }
  }
  const std::exception_ptr failure = std::exchange(s.failure, nullptr);
  s.busy.store(false);
  if (failure) std::rethrow_exception(failure);
}

std::span<std::byte> ThreadPool::scratch(int thread, std::size_t bytes) {
  Scratch& scratch = state_->scratch.at(static_cast<std::size_t>(thread));
  if (scratch.size < bytes) {
    scratch.data.reset();
    scratch.size = 0;
    scratch.data.reset(new (std::align_val_t{kCacheLine}) std::byte[bytes]);
    scratch.size = bytes;
  }
  return {scratch.data.get(), scratch.size};
}

}  // namespace oasr
