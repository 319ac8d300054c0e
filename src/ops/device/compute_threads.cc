#include "ops/device/compute_threads.h"

#include <ATen/Parallel.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/machine/cores.h"

namespace valora::ops {
namespace {

constexpr Duration kPeriod = std::chrono::milliseconds(250), kQuiet = std::chrono::minutes(1);

}  // namespace

void set_compute_threads(int threads) {
  if (threads == 0) threads = std::min(at::get_num_threads(), usable_cores());
  if (threads != at::get_num_threads()) at::set_num_threads(threads);
}

ComputeThreads::ComputeThreads(const Clock& clock, CoreLoadFiles files)
    : clock_(clock),
      most_(at::get_num_threads()),
      reader_(std::move(files)),
      share_(most_, std::max(1, reader_.cpus())),
      looked_(clock.now()),
      threads_(most_) {
  const auto load = most_ > 1 ? reader_.read() : std::nullopt;
  active_ = load.has_value();
  last_ = load.value_or(CoreLoad{});
}

ComputeThreads::~ComputeThreads() {
  if (threads_ != most_) at::set_num_threads(most_);
}

void ComputeThreads::adjust() {
  if (!active_) return;
  const TimePoint now = clock_.now();
  if (now - looked_ < kPeriod) return;
  const auto load = reader_.read();
  if (!load) return;
  // The waiting time can shrink: threads that have ended no longer count.
  share_.update(
      {load->all - last_.all, load->own - last_.own, std::max(0.0, load->waited - last_.waited)},
      seconds(now - looked_));
  last_ = *load;
  looked_ = now;
  apply(share_.threads());
}

void ComputeThreads::apply(int threads) {
  if (threads == threads_) return;
  if (threads < threads_ && (!warned_ || looked_ - *warned_ >= kQuiet)) {
    warned_ = looked_;
    spdlog::warn(
        "other programs keep {:.1f} of {} CPUs busy: computing with {} threads instead of {} until "
        "they stop; --threads fixes the number",
        share_.others(), reader_.cpus(), threads, most_);
  }
  threads_ = threads;
  at::set_num_threads(threads);
}

}  // namespace valora::ops
