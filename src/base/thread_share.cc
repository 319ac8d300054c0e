#include "base/thread_share.h"

#include <algorithm>
#include <cmath>

namespace valora {
namespace {

// CPUs that others must keep busy before a thread is given up, and below which all return. One busy
// program has at least half of a CPU that it shares with one thread.
constexpr double kBegin = 0.3, kEnd = 0.15;
// The share of their time that the process's threads must have waited: a program that only takes
// idle time disturbs nobody.
constexpr double kWaiting = 0.1;

}  // namespace

ThreadShare::ThreadShare(int most, int cpus) : most_(most), cpus_(cpus), threads_(most) {}

void ThreadShare::update(const CoreLoad& spent, double seconds) {
  others_ = std::max(0.0, (spent.all - spent.own) / seconds);
  const double wanted = spent.own + spent.waited;
  if (crowded_)
    crowded_ = others_ >= kEnd;
  else
    crowded_ = others_ >= kBegin && spent.waited >= kWaiting * wanted;
  threads_ = most_;
  if (crowded_)
    threads_ = std::clamp(cpus_ - static_cast<int>(std::ceil(others_ - kBegin)), 1, most_);
}

}  // namespace valora
