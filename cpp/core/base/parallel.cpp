#include "core/base/parallel.hpp"

#include <algorithm>
#include <vector>

namespace ckce {

void Parallel::each(Index n_tasks, Index doubles, const std::function<Work()>& make_work) {
  next_ = 0;
  turn_ = 0;
  stop_ = false;
  error_ = nullptr;
  caller_ = std::this_thread::get_id();
  n_tasks_ = n_tasks;
  auto work_off = [&] {
    try {
      const Work work = make_work();
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
  if (helpers > 0) threads.reserve(as_size(helpers));
  running_ = 0;
  for (Index t = 0; t < helpers; ++t) {
    try {
      ++running_;
      threads.emplace_back([&] {
        work_off();
        const std::lock_guard<std::mutex> lock(mutex_);
        --running_;
        finished_.notify_one();
      });
    } catch (...) {  // no thread, or no memory for one: those that run do its work
      --running_;
      break;
    }
  }
  work_off();
  wait_for_threads();
  for (auto& thread : threads) thread.join();
  if (error_) std::rethrow_exception(error_);
}

void Parallel::each_piece(Index count, Index piece,
                          const std::function<void(Index, Index)>& work) {
  each(count_pieces(count, piece), [&] {
    return [&](Index task) { work(task * piece, std::min(piece, count - task * piece)); };
  });
}

void Parallel::wait_until(const std::function<bool()>& ready) {
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

void Parallel::in_turn(Index task, const std::function<void()>& commit) {
  wait_until([&] { return turn_ == task; });
  commit();
  ++turn_;
}

void Parallel::tick() {
  if (!tick_ || std::this_thread::get_id() != caller_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_tick_ < std::chrono::milliseconds(20)) return;
  last_tick_ = now;
  const double done = std::min(1.0, static_cast<double>(next_) / static_cast<double>(n_tasks_));
  tick_(from_ + (to_ - from_) * done);
}

void Parallel::wait_for_threads() {
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

}  // namespace ckce
