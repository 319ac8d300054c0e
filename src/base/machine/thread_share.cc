#include "base/machine/thread_share.h"

#include <algorithm>
#include <cmath>

namespace valora {
namespace {

// CPUs that other programs must keep busy before a thread is dropped, and the level below which all
// threads return. A busy program that shares a CPU with one thread gets at least half of it.
constexpr double kBegin = 0.3, kEnd = 0.15;
// The share of their runnable time that our threads must have waited: a program that uses only idle
// CPUs is no reason to drop one.
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
