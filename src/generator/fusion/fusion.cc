#include "generator/fusion/fusion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "base/files/folder_lock.h"
#include "base/log/log.h"
#include "engine/start/start_engine.h"
#include "generator/stopped.h"

namespace valora::generator {
namespace {

namespace fs = std::filesystem;

constexpr int kRequestsWaiting = 4096;  // enough for an evaluation, the engine's only client

std::vector<std::string> shuffled(std::vector<std::string> names, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (size_t i = names.size(); i > 1; --i) std::swap(names[i - 1], names[random() % i]);
  return names;
}

// How far the base model is below the task's floor.
double hardness(const ReportedTask& task) { return task.floor.value_or(0) - task.base; }

std::vector<std::string> order_of(const FusionReport& report, const FusionOptions& options) {
  std::vector<ReportedTask> tasks = report.tasks;
  if (options.order == FusionOrder::kHardestFirst)
    std::ranges::stable_sort(tasks, std::greater<>(), hardness);
  std::vector<std::string> names;
  for (const ReportedTask& task : tasks) names.push_back(task.name);
  return options.order == FusionOrder::kRandom ? shuffled(std::move(names), options.seed) : names;
}

std::string failures(const FusionStep& step, const std::vector<TaskData>& all) {
  std::vector<std::string> parts;
  for (const std::string& name : step.failed) {
    const auto task = std::ranges::find(all, name, [](const TaskData& d) { return d.task.name; });
    parts.push_back(
        fmt::format("{} {:.3f} < {:.3f}", name, step.accuracies.at(name), *task->task.floor));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

Fusion::Fusion(const FusionOptions& options, FusionEvents events)
    : options_(options), events_(std::move(events)) {
  if (const auto tell = events_.progress)
    events_.progress = [this, tell](const std::string& what, int64_t done, int64_t total,
                                    const std::string& note) {
      const std::string attempt =
          fmt::format("attempt {} of at most {}: ", attempts_, max_attempts_);
      tell((attempts_ > 0 ? attempt : "") + what, done, total, note);
    };
}

const TaskData& Fusion::data_of(const std::string& task) const {
  return *std::ranges::find(data_, task, [](const TaskData& d) { return d.task.name; });
}

std::string Fusion::folder_of(const std::string& lineage) const {
  return options_.output + "/attempts/" + digest_of(std::string_view(lineage)).hex();
}

// Opens the model for serving and for training (as views of the checkpoint), and loads every task's
// data.
Status Fusion::open(const std::vector<Task>& tasks) {
  EngineOptions engine = options_.engine;
  engine.fetch.allowed_local_path = "/";  // the user chooses the files
  engine.max_waiting = std::max(engine.max_waiting, kRequestsWaiting);
  engine.shares_cores = true;
  engine.prefix_caching = false;  // every attempt is a different adapter, and no picture repeats
  VALORA_TRY(serving, start_engine(engine));
  engine_ = std::move(serving);
  engine.max_model_len = engine_->model().max_model_len;
  VALORA_TRY(model, TrainableModel::open(engine));
  model_ = std::move(model);
  runner_ = std::make_unique<AttemptRunner>(*model_, *engine_, options_, events_);
  for (const Task& task : tasks) {
    const auto progress = [&](const LoadingProgress& p) {
      events_.progress(p.what + " of " + p.task, p.done, p.total, "");
    };
    VALORA_TRY(data, load_task(task, options_, *model_, *engine_, progress, events_.stop));
    data_.push_back(std::move(data));
  }
  const Digest identity = DigestBuilder()
                              .add(attempt_json(options_).dump())
                              .add(model_->loaded.weights->sketch())
                              .finish();
  VALORA_TRY(state, read_state(options_.output + "/state.json", identity.hex()));
  state_ = std::move(state);
  return {};
}

void Fusion::report_changed_data(const TaskData& data) const {
  const auto earlier = state_.base.lower_bound(data.task.name + ":");
  if (earlier != state_.base.end() && earlier->first.starts_with(data.task.name + ":"))
    spdlog::warn(
        "task {}: its data, pictures, prompts or scoring have changed since the last run in "
        "{}, so it is trained again",
        data.task.name, options_.output);
}

Status Fusion::measure_base() {
  report_ = {.model = options_.engine.model_path, .options = to_json(options_)};
  for (const TaskData& data : data_) {
    const std::string key = key_of(data);
    if (!state_.base.contains(key)) {
      report_changed_data(data);
      TaskData asked{data.task, data.validation};
      asked.task.head.reset();  // the base model has no heads
      VALORA_TRY(accuracy, runner_->accuracy(asked, ""));
      state_.base[key] = accuracy;
      VALORA_CHECK(save_state());
    }
    ReportedTask task{data.task.name,
                      task_type_name(data.task.type),
                      metric_name(data.task.metric),
                      data.task.floor,
                      state_.base[key],
                      chance_of(data)};
    task.train_samples = data.train_samples;
    task.validation_samples = static_cast<int64_t>(data.validation.size());
    task.dropped = data.dropped;
    report_.tasks.push_back(std::move(task));
  }
  return {};
}

Status Fusion::train_separately() {
  if (!options_.alone) return {};
  const auto tasks = static_cast<int64_t>(data_.size());
  max_attempts_ = tasks + max_attempts(tasks, 0);
  for (const TaskData& data : data_) VALORA_CHECK(run_attempt(data, {-1, options_.ranks.front()}));
  return {};
}

// In the order to try: each open adapter at its current rank, then at higher ranks; finally a new
// one.
void Fusion::add_candidates(const std::vector<int32_t>& invocation,
                            std::vector<Candidate>& list) const {
  std::vector<int> open;
  for (size_t i = 0; i < adapters_.size(); ++i)
    if (!adapters_[i].closed && adapters_[i].invocation == invocation)
      open.push_back(static_cast<int>(i));
  if (options_.packing == FusionPacking::kLast && open.size() > 1) open = {open.back()};
  for (const int i : open) {
    const int64_t rank = adapters_[static_cast<size_t>(i)].rank;
    list.push_back({i, rank, invocation});
    for (const int64_t higher : options_.ranks)
      if (higher > rank) list.push_back({i, higher, invocation});
  }
  for (const int64_t rank : options_.ranks) list.push_back({-1, rank, invocation});
}

// Activated adapters, if the task wants them, before plain ones.
std::vector<Fusion::Candidate> Fusion::candidates(const TaskData& data) const {
  std::vector<Candidate> list;
  if (!data.invocation.empty()) add_candidates(data.invocation, list);
  add_candidates({}, list);
  return list;
}

// Upper bound on the attempts for `tasks` tasks if `adapters` adapters are already open.
int64_t Fusion::max_attempts(int64_t tasks, int64_t adapters) const {
  int64_t most = 0;
  for (int64_t i = 0; i < tasks; ++i) {
    const int64_t open = adapters + i;
    most += (options_.packing == FusionPacking::kLast ? std::min<int64_t>(open, 1) : open) + 1;
  }
  const bool both_kinds =
      std::ranges::any_of(data_, [](const TaskData& data) { return !data.invocation.empty(); });
  return most * static_cast<int64_t>(options_.ranks.size()) * (both_kinds ? 2 : 1);
}

// The candidate's adapter after learning the task.
Fusion::OpenAdapter Fusion::grown(const TaskData& data, const Candidate& candidate) const {
  if (candidate.adapter < 0) {
    const std::string activation = candidate.invocation.empty()
                                       ? ""
                                       : fmt::format("[{}] ", fmt::join(candidate.invocation, ","));
    return {fmt::format("adapter-{}", adapters_.size() + 1),
            activation + fmt::format("{}@{}", key_of(data), candidate.rank),
            candidate.rank,
            candidate.invocation,
            {data.task.name}};
  }
  OpenAdapter adapter = adapters_[static_cast<size_t>(candidate.adapter)];
  adapter.tasks.push_back(data.task.name);
  adapter.lineage += " > " + key_of(data);
  if (candidate.rank != adapter.rank) adapter.lineage += fmt::format("@{}", candidate.rank);
  adapter.rank = candidate.rank;
  return adapter;
}

// Attempts with a known result are not trained again. Which tasks fail depends on this run's
// floors.
Result<FusionStep> Fusion::run_attempt(const TaskData& data, const Candidate& candidate) {
  const OpenAdapter adapter = grown(data, candidate);
  ++attempts_;
  Attempt attempt{.adapter = adapter.name,
                  .rank = candidate.rank,
                  .invocation = adapter.invocation,
                  .task = &data,
                  .folder = folder_of(adapter.lineage)};
  for (const std::string& task : adapter.tasks)
    if (task != data.task.name) attempt.held.push_back(&data_of(task));
  if (candidate.adapter >= 0)
    attempt.from = folder_of(adapters_[static_cast<size_t>(candidate.adapter)].lineage);
  if (!state_.attempts.contains(adapter.lineage)) {
    if (events_.stop.stop_requested()) return stopped();
    VALORA_TRY(step, runner_->run(attempt));
    state_.attempts[adapter.lineage] = std::move(step);
    VALORA_CHECK(save_state());
  }
  FusionStep step = state_.attempts[adapter.lineage];
  step.adapter = adapter.name;
  step.failed.clear();
  for (const auto& [task, accuracy] : step.accuracies)
    if (const auto& floor = data_of(task).task.floor; floor && accuracy < *floor)
      step.failed.push_back(task);
  return step;
}

FusionStep& Fusion::add_step(FusionStep step, bool kept, std::string why) {
  step.kept = kept;
  step.why = std::move(why);
  report_.seconds += step.seconds + step.evaluation_seconds;
  return report_.steps.emplace_back(std::move(step));
}

void Fusion::keep(const Candidate& candidate, OpenAdapter adapter) {
  if (candidate.adapter < 0)
    adapters_.push_back(std::move(adapter));
  else
    adapters_[static_cast<size_t>(candidate.adapter)] = std::move(adapter);
}

Status Fusion::place(const TaskData& data, int64_t later) {
  const std::vector<Candidate> all = candidates(data);
  max_attempts_ = attempts_ + static_cast<int64_t>(all.size()) +
                  max_attempts(later, static_cast<int64_t>(adapters_.size()) + 1);
  std::vector<size_t> own;
  for (size_t i = 0; i < all.size(); ++i) {
    VALORA_TRY(step, run_attempt(data, all[i]));
    if (step.failed.empty()) {
      keep(all[i], grown(data, all[i]));
      events_.step(add_step(std::move(step), true,
                            all[i].adapter < 0 ? "kept in an adapter of its own" : "kept"));
      return {};
    }
    if (all[i].adapter < 0) own.push_back(report_.steps.size());
    const std::string why = "rolled back: " + failures(step, data_);
    const FusionStep& undone = add_step(std::move(step), false, why);
    if (i + 1 < all.size()) events_.step(undone);
  }
  keep_best(data, own);
  return {};
}

// The task missed its floor even in an adapter of its own: keeps the best of these steps after all,
// and marks it.
void Fusion::keep_best(const TaskData& data, const std::vector<size_t>& own) {
  const auto accuracy = [&](size_t i) { return report_.steps[i].accuracies.at(data.task.name); };
  const size_t best = *std::ranges::max_element(own, {}, accuracy);
  if (best != own.back()) events_.step(report_.steps.back());
  FusionStep& step = report_.steps[best];
  Candidate candidate{-1, step.rank};
  if (step.activated) candidate.invocation = data.invocation;
  OpenAdapter adapter = grown(data, candidate);
  adapter.closed = true;
  keep(candidate, std::move(adapter));
  step.kept = true;
  step.why = "kept below its floor, which even an adapter of its own did not reach: " +
             failures(step, data_);
  events_.step(step);
}

Result<FusionReport> Fusion::run(const std::vector<Task>& tasks) {
  VALORA_CHECK(check(options_));
  VALORA_CHECK(check_head_names(tasks));
  std::error_code fault;
  fs::create_directories(options_.output, fault);
  if (fault)
    return unprocessable(options_.output + " cannot be created: " + fault.message(), "output");
  VALORA_TRY(lock, FolderLock::take(options_.output));
  VALORA_CHECK(prepare_folder(tasks));
  VALORA_CHECK(open(tasks));
  VALORA_CHECK(measure_base());
  VALORA_CHECK(train_separately());
  const std::vector<std::string> order = order_of(report_, options_);
  for (size_t i = 0; i < order.size(); ++i)
    VALORA_CHECK(place(data_of(order[i]), static_cast<int64_t>(order.size() - i) - 1));
  VALORA_CHECK(finish());
  return report_;
}

}  // namespace valora::generator
