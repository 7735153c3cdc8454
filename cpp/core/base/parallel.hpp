// Threads over fixed tasks. Which thread runs a task never changes the task, and whatever tasks
// share is added in task order, so results have the same bits for any number of threads. Few
// templates: compilers make them again for every caller.
#pragma once

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
  Parallel(const Parallel&) = delete;
  Parallel& operator=(const Parallel&) = delete;
  ~Parallel();

  // The part of the progress bar that the next calls of `each` fill.
  void span(double from, double to) {
    from_ = from;
    to_ = to;
  }

  // Runs work(task) for task = 0 .. n_tasks-1, started in this order. Each thread makes its own
  // `work = make_work()`, which may hold scratch memory.
  using Work = std::function<void(Index)>;
  void each(Index n_tasks, const std::function<Work()>& make_work) { each(n_tasks, 1, make_work); }

  // The same for work that holds so many doubles, see kThreadDoubles.
  void each(Index n_tasks, Index doubles, const std::function<Work()>& make_work);

  // work(begin, size) for the pieces of 0 .. count-1, a task each.
  void each_piece(Index count, Index piece, const std::function<void(Index, Index)>& work);

  // work(i) for i = 0 .. count-1, `stripe` of them in a task: for work too small to be shared
  // singly.
  template <class One>
  void each_striped(Index count, Index stripe, One work) {
    each_piece(count, stripe, [&](Index begin, Index size) {
      for (Index i = begin; i < begin + size; ++i) work(i);
    });
  }

  // Inside a task: waits until `ready()`; gives up when another task has failed.
  template <class Ready>
  void wait_until(Ready ready) {
    if (!ready()) wait_on(ready);
  }

  // Inside task t: runs commit() after the commits of all tasks before t.
  void in_turn(Index task, const std::function<void()>& commit);

  // Calls the tick when 20 ms have passed; cheap, and off the calling thread no more than a look
  // whether another task has failed: then it gives up.
  void tick();

 private:
  struct Stopped {};

  void wait_on(const std::function<bool()>& ready);
  // Sets so many helpers to work, or as many as there can be.
  void call_helpers(Index count, const std::function<void()>& work);
  void help(Index number, Index seen);
  void wait_for_helpers();

  int n_threads_;
  Tick tick_;
  double from_ = 0.0;
  double to_ = 1.0;
  Index n_tasks_ = 1;
  std::atomic<Index> next_{0};
  std::atomic<Index> turn_{0};
  std::atomic<bool> stop_{false};
  std::atomic<Index> running_{0};  // helpers at work
  std::exception_ptr error_;
  std::thread::id caller_;
  std::chrono::steady_clock::time_point last_tick_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable finished_;

  // Helpers live as long as this object: a call of the core makes them once, not for each of its
  // loops.
  std::vector<std::thread> helpers_;
  std::condition_variable called_;
  std::atomic<Index> calls_{0};
  Index wanted_ = 0;  // of the helpers, the first so many
  const std::function<void()>* work_ = nullptr;
  bool over_ = false;
};

}  // namespace ckce
