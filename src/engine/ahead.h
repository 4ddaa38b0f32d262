// What other threads prepare while this one waits for a GPU.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <system_error>
#include <utility>

#include "device/thread_pool.h"

namespace oasr::engine {

// One thread less than `pool` has, so that a processor is left for the one that gives the GPU work; null where the system
// has no more. pool: of two threads at least.
inline std::unique_ptr<ThreadPool> threads_beside(const ThreadPool& pool) {
  try {
    return std::make_unique<ThreadPool>(pool.threads() - 1);
  } catch (const std::system_error&) {
    return nullptr;
  }
}

// One piece of work at a time. What the work reads and writes must outlive this.
class Ahead {
 public:
  using Work = std::function<void(ThreadPool&)>;

  // The threads of the work, which nobody else may use meanwhile; null: there are none, work is done when it is started.
  explicit Ahead(ThreadPool* threads) : threads_(threads) {}
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;

  bool has_threads() const { return threads_ != nullptr; }

  // Runs work(pool) on other threads, or now on `otherwise`.
  void start(ThreadPool& otherwise, Work work) {
    if (threads_ == nullptr) return work(otherwise);
    try {
      running_ = std::async(std::launch::async, work, std::ref(*threads_));
    } catch (const std::system_error&) {  // the system has no thread left
      work(*threads_);
    }
  }
  // Waits for it, and throws what it threw. `ask`, if it is one, is called meanwhile: the caller may want to stop.
  void finish(const std::function<bool()>& ask) {
    if (!running_.valid()) return;
    while (ask && running_.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) ask();
    running_.get();
  }

 private:
  ThreadPool* threads_;
  std::future<void> running_;  // which waits for the work when it goes
};

}  // namespace oasr::engine
