// Threads over fixed tasks. Which thread runs a task never changes the task, and whatever tasks
// share is added in task order, so results have the same bits for any number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/sizes.hpp"
#include "core/base/types.hpp"

namespace ckce {

// Called on the calling thread every 20 ms or so with the fraction done; may throw to interrupt.
using Tick = std::function<void(double)>;

class Parallel {
 public:
  explicit Parallel(int n_threads = 1, Tick tick = {})
      : n_threads_(n_threads), tick_(std::move(tick)) {}

  // The part of the progress bar that the next calls of `each` fill.
  void span(double from, double to) {
    from_ = from;
    to_ = to;
  }

  // Runs work(task) for task = 0 .. n_tasks-1, started in this order. Each thread makes its own
  // `work = make_work()`, which may hold scratch memory.
  template <class MakeWork>
  void each(Index n_tasks, MakeWork make_work) {
    each(n_tasks, 1, make_work);
  }

  // The same for work that holds so many doubles, see kThreadDoubles.
  template <class MakeWork>
  void each(Index n_tasks, Index doubles, MakeWork make_work) {
    next_ = 0;
    turn_ = 0;
    stop_ = false;
    error_ = nullptr;
    caller_ = std::this_thread::get_id();
    n_tasks_ = n_tasks;
    auto run = [&] {
      try {
        auto work = make_work();
        for (Index task; !stop_ && (task = next_++) < n_tasks;) {
          work(task);
          tick();
        }
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!error_) error_ = std::current_exception();
        stop_ = true;
      }
    };
    std::vector<std::thread> threads;
    const Index room = std::max<Index>(kThreadDoubles / doubles, 1);
    const Index helpers = std::min<Index>({n_threads_, n_tasks, room}) - 1;
    if (helpers > 0) threads.reserve(static_cast<std::size_t>(helpers));
    running_ = 0;
    for (Index t = 0; t < helpers; ++t) {
      try {
        ++running_;
        threads.emplace_back([&] {
          run();
          const std::lock_guard<std::mutex> lock(mutex_);
          --running_;
          finished_.notify_one();
        });
      } catch (...) {  // no thread, or no memory for one: those that run do its work
        --running_;
        break;
      }
    }
    run();
    wait_for_threads();
    for (auto& thread : threads) thread.join();
    if (error_) std::rethrow_exception(error_);
  }

  // work(i) for i = 0 .. count-1, `stripe` of them in a task: for work too small to be shared
  // singly.
  template <class Work>
  void each_striped(Index count, Index stripe, Work work) {
    each_piece(count, stripe, [&](Index begin, Index size) {
      for (Index i = begin; i < begin + size; ++i) work(i);
    });
  }

  // work(begin, size) for the pieces of 0 .. count-1, a task each.
  template <class Work>
  void each_piece(Index count, Index piece, Work work) {
    each(count_pieces(count, piece), [&] {
      return [&](Index task) { work(task * piece, std::min(piece, count - task * piece)); };
    });
  }

  // Inside a task: waits until `ready()`; gives up when another task has failed.
  template <class Ready>
  void wait_until(Ready ready) {
    for (int spins = 0; !ready(); ++spins) {
      if (stop_) throw Stopped();
      if (spins < 256) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        tick();
      }
    }
  }

  // Inside task t: runs commit() after the commits of all tasks before t.
  template <class Commit>
  void in_turn(Index task, Commit commit) {
    wait_until([&] { return turn_ == task; });
    commit();
    ++turn_;
  }

  // Calls the tick when 20 ms have passed; cheap, and a no-op off the calling thread.
  void tick() {
    if (!tick_ || std::this_thread::get_id() != caller_) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_tick_ < std::chrono::milliseconds(20)) return;
    last_tick_ = now;
    const double done = std::min(1.0, static_cast<double>(next_) / static_cast<double>(n_tasks_));
    tick_(from_ + (to_ - from_) * done);
  }

 private:
  struct Stopped {};

  void wait_for_threads() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (running_ > 0) {
      finished_.wait_for(lock, std::chrono::milliseconds(20));
      if (stop_) continue;
      lock.unlock();
      try {
        tick();
        lock.lock();
      } catch (...) {
        lock.lock();
        if (!error_) error_ = std::current_exception();
        stop_ = true;
      }
    }
  }

  int n_threads_;
  Tick tick_;
  double from_ = 0.0;
  double to_ = 1.0;
  Index n_tasks_ = 1;
  std::atomic<Index> next_{0};
  std::atomic<Index> turn_{0};
  std::atomic<bool> stop_{false};
  std::atomic<int> running_{0};
  std::exception_ptr error_;
  std::thread::id caller_;
  std::chrono::steady_clock::time_point last_tick_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable finished_;
};

}  // namespace ckce
