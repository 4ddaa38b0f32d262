// Worker threads for data-parallel kernels, and the context that is passed to every kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "device/arithmetic.h"
#include "device/cpu.h"
#include "device/run_observer.h"

namespace oasr {

class Gpu;

// A fixed set of threads that share loops. Workers spin for some microseconds, then sleep, so
// that a busy neighbour costs its share and no more. Items are handed out dynamically, in rising
// order; results must not depend on which thread takes an item. One parallel_for at a time (the
// caller's thread takes part); nested calls run inline.
class ThreadPool {
 public:
  // threads >= 1, the caller's included. Throws std::system_error where the system has no more.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // A borrowed callable body(item, thread): no allocation. thread is in [0, threads()).
  class Body {
   public:
    template <class F>
    Body(const F& f)  // NOLINT: implicit on purpose, lives for the call only
        : object_(&f), call_([](const void* o, std::int64_t item, int thread) {
            (*static_cast<const F*>(o))(item, thread);
          }) {}
    void operator()(std::int64_t item, int thread) const { call_(object_, item, thread); }

   private:
    const void* object_;
    void (*call_)(const void*, std::int64_t, int);
  };

  // Runs body for every item in [0, items), items < 2^32, and returns when all are done. If bodies
  // throw (a CHECK), the other items still run, then the first exception is thrown here.
  void parallel_for(std::int64_t items, Body body);

  // At least `bytes` of uninitialised memory for the body that runs as `thread`, aligned to 64
  // bytes; it keeps its size, so the steady state allocates nothing. Valid until the same thread
  // asks again.
  std::span<std::byte> scratch(int thread, std::size_t bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Passed to every kernel: where and how to run. Not thread-safe: one session, one context.
struct ExecContext {
  ThreadPool* pool = nullptr;
  Isa isa = Isa::scalar;
  RunObserver* observer = nullptr;  // may be null
  // Null: kernels run on the pool and matrices are host memory. Else kernels run on this GPU, and all
  // that they read and write, weights included, is its memory.
  Gpu* gpu = nullptr;
  Arithmetic arithmetic = Arithmetic::float32;  // another one with a Gpu only
};

}  // namespace oasr
