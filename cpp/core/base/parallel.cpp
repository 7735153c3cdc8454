#include "core/base/parallel.hpp"

#include <algorithm>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace ckce {
namespace {

constexpr int kTurns = 256;  // in which a task waits for another before it sleeps

// Waits some 10 to 50 us for what will happen soon; to be woken takes as long. Never by yielding:
// on a busy machine the turn of another process takes milliseconds.
template <class Done>
void spin_until(Done done) {
  for (int i = 0; i < 1000 && !done(); ++i) {
#if defined(__x86_64__) || defined(_M_X64)
    _mm_pause();
#endif
  }
}

}  // namespace

Parallel::~Parallel() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
    ++calls_;
  }
  called_.notify_all();
  for (auto& helper : helpers_) helper.join();
}

void Parallel::each(Index n_tasks, Index doubles, const std::function<Work()>& make_work) {
  next_ = 0;
  turn_ = 0;
  stop_ = false;
  error_ = nullptr;
  caller_ = std::this_thread::get_id();
  n_tasks_ = n_tasks;
  const std::function<void()> work_off = [&] {
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
  const Index room = std::max<Index>(kThreadDoubles / doubles, 1);
  call_helpers(std::min<Index>({n_threads_, n_tasks, room}) - 1, work_off);
  work_off();
  wait_for_helpers();
  stop_ = false;
  if (error_) std::rethrow_exception(error_);
}

void Parallel::call_helpers(Index count, const std::function<void()>& work) {
  if (count <= 0) return;
  while (static_cast<Index>(helpers_.size()) < count) {
    try {
      helpers_.emplace_back([this, number = static_cast<Index>(helpers_.size()),
                             seen = calls_.load()] { help(number, seen); });
    } catch (...) {  // no thread, or no memory for one: those that run do its work
      break;
    }
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    work_ = &work;
    wanted_ = std::min<Index>(count, static_cast<Index>(helpers_.size()));
    running_ = wanted_;
    ++calls_;
  }
  called_.notify_all();
}

void Parallel::help(Index number, Index seen) {
  for (;;) {
    spin_until([&] { return calls_ != seen; });
    std::unique_lock<std::mutex> lock(mutex_);
    called_.wait(lock, [&] { return calls_ != seen; });
    seen = calls_;
    if (over_) return;
    if (number >= wanted_) continue;
    const auto& work = *work_;
    lock.unlock();
    work();
    lock.lock();
    if (--running_ == 0) finished_.notify_one();
  }
}

void Parallel::wait_for_helpers() {
  spin_until([&] { return running_ == 0; });
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

void Parallel::each_piece(Index count, Index piece, const std::function<void(Index, Index)>& work) {
  each(count_pieces(count, piece), [&] {
    return [&](Index task) { work(task * piece, std::min(piece, count - task * piece)); };
  });
}

void Parallel::wait_on(const std::function<bool()>& ready) {
  for (int turns = 0; !ready(); ++turns) {
    if (stop_) throw Stopped();
    if (turns < kTurns) {
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
  if (stop_) throw Stopped();
  if (!tick_ || std::this_thread::get_id() != caller_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_tick_ < std::chrono::milliseconds(20)) return;
  last_tick_ = now;
  const double done = std::min(1.0, static_cast<double>(next_) / static_cast<double>(n_tasks_));
  tick_(from_ + (to_ - from_) * done);
}

}  // namespace ckce
