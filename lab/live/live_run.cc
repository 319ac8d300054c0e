#include "lab/live/live_run.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>

#include "lab/live/live_prompts.h"

namespace valora::bench {
namespace {

using LiveClock = std::chrono::steady_clock;

constexpr auto kSamplePeriod = std::chrono::milliseconds(250);

struct Progress {
  std::mutex mutex;
  std::condition_variable ended;
};

class Turn final : public ResponseSink {
 public:
  explicit Turn(Progress& progress) : progress_(progress) {}

  void on_output(OutputChunk chunk) override {
    for (const TokenOutput& token : chunk.tokens) answer_.tokens.push_back(token.chosen.id);
    answer_.text += chunk.text;
  }
  void on_done(const FinalInfo& info) override {
    answer_.timings = info.timings;
    end();
  }
  void on_error(const Error& error) override {
    answer_.error = error;
    end();
  }
  // Requires the progress mutex.
  bool has_ended() const { return end_.has_value(); }
  // Requires has_ended().
  LiveClock::time_point ended_at() const { return *end_; }
  LiveAnswer& answer() { return answer_; }

 private:
  void end() {
    const std::lock_guard lock(progress_.mutex);
    end_ = LiveClock::now();
    progress_.ended.notify_all();
  }

  Progress& progress_;
  LiveAnswer answer_;
  std::optional<LiveClock::time_point> end_;
};

class LiveRun {
 public:
  LiveRun(LiveTarget& target, std::span<const sim::Arrival> arrivals,
          std::span<const std::string> adapters, const LiveOptions& options)
      : target_(target),
        arrivals_(arrivals),
        adapters_(adapters),
        options_(options),
        prompts_(arrivals, options) {
    for (size_t i = 0; i < arrivals.size(); ++i) {
      turns_.push_back(std::make_shared<Turn>(progress_));
      waiting_.push_back(i);
    }
  }

  LiveReport run() {
    for (size_t done = 0; done < turns_.size(); done = ended()) {
      for (const size_t index : pop_startable()) start(index);
      sample();
      if (options_.progress) options_.progress(done);
      std::unique_lock lock(progress_.mutex);
      progress_.ended.wait_until(lock, next_event());
    }
    LiveReport report;
    for (const auto& turn : turns_) report.answers.push_back(turn->answer());
    report.stats = target_.stats();
    if (corrections_ > 0) report.cost_correction = correction_sum_ / corrections_;
    report.invalid_kv = samples_ > 0 ? invalid_sum_ / samples_ : 0;
    return report;
  }

 private:
  // When the request is due; nullopt while its predecessor is still running.
  std::optional<LiveClock::time_point> due(size_t index) const {
    const sim::Arrival& arrival = arrivals_[index];
    if (arrival.after && !turns_[*arrival.after]->has_ended()) return {};
    return (arrival.after ? turns_[*arrival.after]->ended_at() : begin_) +
           std::chrono::duration_cast<LiveClock::duration>(arrival.at);
  }

  size_t ended() {
    const std::lock_guard lock(progress_.mutex);
    return static_cast<size_t>(
        std::ranges::count_if(turns_, [](const auto& turn) { return turn->has_ended(); }));
  }

  bool startable(size_t index) const {
    const auto& previous = arrivals_[index].previous;
    const auto when = due(index);
    return when && *when <= LiveClock::now() && (!previous || turns_[*previous]->has_ended());
  }

  std::vector<size_t> pop_startable() {
    const std::lock_guard lock(progress_.mutex);
    std::vector<size_t> startable;
    std::erase_if(waiting_, [&](size_t index) {
      const bool now = this->startable(index);
      if (now) startable.push_back(index);
      return now;
    });
    return startable;
  }

  // The time until which to wait; turns that end notify earlier.
  LiveClock::time_point next_event() const {
    LiveClock::time_point next = next_sample_;
    for (const size_t index : waiting_)
      if (const auto when = due(index); when && *when > LiveClock::now())
        next = std::min(next, *when);
    return next;
  }

  void start(size_t index) {
    const sim::Arrival& arrival = arrivals_[index];
    const auto& turn = turns_[index];
    turn->answer().arrival = std::chrono::duration<double>(*due(index) - begin_).count();
    for (const auto& before : {arrival.previous, arrival.after})
      if (before && turns_[*before]->answer().error)
        return turn->on_error({ErrorCode::kCancelled, "an earlier turn failed", {}});
    GenerateRequest request;
    request.prompt =
        prompts_.make(index, arrival.previous ? &turns_[*arrival.previous]->answer() : nullptr);
    if (options_.salt) request.cache_salt = options_.salt(index);
    if (arrival.tenant != 0) {
      request.tenant = std::to_string(arrival.tenant);
      request.share = arrival.share;
    }
    request.priority = arrival.priority;
    if (arrival.adapter != scheduler::kBaseModel)
      request.adapters = {{adapters_[static_cast<size_t>(arrival.adapter)], 1}};
    if (arrival.ttft_target > Duration{}) request.ttft_target = seconds(arrival.ttft_target);
    request.sampling.max_tokens = arrival.answer_tokens;
    request.sampling.temperature = 0;
    request.sampling.ignore_eos = true;
    const Status sent = target_.submit(std::move(request), turn);
    if (!sent.ok()) turn->on_error(sent.error());
  }

  void sample() {
    if (LiveClock::now() < next_sample_) return;
    next_sample_ = LiveClock::now() + kSamplePeriod;
    const EngineStats stats = target_.stats();
    correction_sum_ += stats.cost_correction;
    ++corrections_;
    const MemoryStats& memory = stats.memory;
    const int kv = memory.history_blocks + memory.running_blocks;
    if (kv == 0) return;
    invalid_sum_ += static_cast<double>(memory.invalid_blocks) / kv;
    ++samples_;
  }

  LiveTarget& target_;
  const std::span<const sim::Arrival> arrivals_;
  const std::span<const std::string> adapters_;
  const LiveOptions& options_;
  LivePrompts prompts_;
  const LiveClock::time_point begin_ = LiveClock::now();
  LiveClock::time_point next_sample_ = begin_;
  Progress progress_;
  std::vector<std::shared_ptr<Turn>> turns_;
  std::deque<size_t> waiting_;  // not sent yet
  double invalid_sum_ = 0;
  int samples_ = 0;
  double correction_sum_ = 0;
  int corrections_ = 0;
};

}  // namespace

LiveReport run_live(LiveTarget& target, std::span<const sim::Arrival> arrivals,
                    std::span<const std::string> adapters, const LiveOptions& options) {
  return LiveRun(target, arrivals, adapters, options).run();
}

LiveReport run_live(Engine& engine, std::span<const sim::Arrival> arrivals,
                    std::span<const std::string> adapters, const LiveOptions& options) {
  EngineTarget target(engine);
  return run_live(target, arrivals, adapters, options);
}

}  // namespace valora::bench
