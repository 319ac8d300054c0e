#include "generator/fusion/fusion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>

#include "base/folder_lock.h"
#include "base/write_file.h"
#include "engine/serving_engine.h"

namespace valora::generator {
namespace {

namespace fs = std::filesystem;

constexpr int kRequestsWaiting = 4096;  // of an evaluation, with the engine's others none

size_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) << 10;
}

size_t folder_bytes(const std::string& folder) {
  size_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file()) bytes += entry.file_size();
  return bytes;
}

std::vector<std::string> shuffled(std::vector<std::string> names, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (size_t i = names.size(); i > 1; --i) std::swap(names[i - 1], names[random() % i]);
  return names;
}

// How far the base falls short of a task's floor.
double hardness(const ReportedTask& task) { return task.floor.value_or(0) - task.base; }

std::vector<std::string> order_of(const FusionReport& report, const FusionOptions& options) {
  std::vector<ReportedTask> tasks = report.tasks;
  if (options.order == FusionOrder::kHardestFirst) std::ranges::stable_sort(tasks, std::greater<>(), hardness);
  std::vector<std::string> names;
  for (const ReportedTask& task : tasks) names.push_back(task.name);
  return options.order == FusionOrder::kRandom ? shuffled(std::move(names), options.seed) : names;
}

std::string failures(const FusionStep& step, const std::vector<TaskData>& all) {
  std::vector<std::string> parts;
  for (const std::string& name : step.failed) {
    const auto task = std::ranges::find(all, name, [](const TaskData& d) { return d.task.name; });
    parts.push_back(fmt::format("{} {:.3f} < {:.3f}", name, step.accuracies.at(name), *task->task.floor));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

const TaskData& Fusion::data_of(const std::string& task) const {
  return *std::ranges::find(data_, task, [](const TaskData& d) { return d.task.name; });
}

// The model twice, in the form that serves and in the one that trains (views of the checkpoint), and every task's data.
Status Fusion::open(std::vector<Task> tasks) {
  EngineOptions engine = options_.engine;
  engine.fetch.allowed_local_path = "/";  // the user names the files
  engine.max_waiting = std::max(engine.max_waiting, kRequestsWaiting);
  engine.shares_cores = true;
  engine.prefix_caching = false;          // every attempt is another adapter, and no picture comes twice
  VALORA_TRY(serving, ServingEngine::start(engine));
  engine_ = std::move(serving);
  engine.max_model_len = engine_->model().max_model_len;
  VALORA_TRY(model, TrainableModel::open(engine));
  model_ = std::move(model);
  runner_ = std::make_unique<AttemptRunner>(*model_, *engine_, options_, events_);

  DigestBuilder identity;
  identity.add(to_json(options_).dump()).add(static_cast<uint64_t>(model_->loaded.weight_bytes));
  for (const Task& task : tasks) {
    const auto progress = [&](const LoadingProgress& p) { events_.progress(p.what + " of " + p.task, p.done, p.total, ""); };
    VALORA_TRY(data, load_task(task, options_, *model_, *engine_, progress));
    identity.add(data.digest).add(task.floor.value_or(-1)).add(static_cast<int>(task.metric));
    data_.push_back(std::move(data));
  }
  const std::string id = identity.finish().hex();
  VALORA_TRY(found, read_state(options_.output + "/state.json", id));
  if (found) state_ = std::move(*found);
  state_.identity = id;
  return {};
}

Status Fusion::measure_base() {
  if (state_.measured) return {};
  state_.report = {.model = options_.engine.model_path, .options = to_json(options_)};
  for (const TaskData& data : data_) {
    TaskData asked{data.task, data.validation};
    asked.task.head.reset();  // the base has none
    VALORA_TRY(base, runner_->accuracy(asked, ""));
    ReportedTask task{data.task.name, task_type_name(data.task.type), metric_name(data.task.metric), data.task.floor, base, chance_of(data)};
    task.train_samples = data.train_samples;
    task.validation_samples = static_cast<int64_t>(data.validation.size());
    task.dropped = data.dropped;
    state_.report.tasks.push_back(std::move(task));
  }
  state_.order = order_of(state_.report, options_);
  state_.measured = true;
  return save();
}

// A task in an adapter of its own, trained once whoever asks for it.
Result<FusionStep> Fusion::alone(const TaskData& data, int64_t rank) {
  for (const FusionStep& step : state_.alone)
    if (step.task == data.task.name && step.rank == rank) return step;
  const std::string name = fmt::format("alone-{}-{}", data.task.name, rank);
  VALORA_TRY(step, runner_->run({.adapter = name, .rank = rank, .task = &data, .folder = work(name)}));
  state_.alone.push_back(step);
  VALORA_CHECK(save());
  return step;
}

Status Fusion::train_alone() {
  if (!options_.alone) return {};
  for (const TaskData& data : data_) VALORA_CHECK(alone(data, options_.ranks.front()));
  return {};
}

// In the order they are tried: the adapters there are, each as it is and then at higher ranks, then one of its own.
std::vector<Fusion::Candidate> Fusion::candidates() const {
  std::vector<Candidate> list;
  const int count = static_cast<int>(state_.adapters.size());
  for (int i = options_.packing == FusionPacking::kLast ? std::max(0, count - 1) : 0; i < count; ++i) {
    const int64_t rank = state_.adapters[static_cast<size_t>(i)].rank;
    list.push_back({i, rank, false});
    for (const int64_t higher : options_.ranks)
      if (higher > rank) list.push_back({i, higher, true});
  }
  for (const int64_t rank : options_.ranks) list.push_back({-1, rank, true});
  return list;
}

Attempt Fusion::attempt_of(const TaskData& data, const Candidate& candidate) const {
  const OpenAdapter& adapter = state_.adapters[static_cast<size_t>(candidate.adapter)];
  Attempt attempt{.adapter = adapter.name, .rank = candidate.rank, .task = &data};
  for (const std::string& name : adapter.tasks) attempt.held.push_back(&data_of(name));
  if (!candidate.anew) attempt.from = adapter.kept;
  attempt.folder = work(fmt::format("step-{}", state_.report.steps.size() + 1));
  return attempt;
}

Result<FusionStep> Fusion::try_candidate(const TaskData& data, const Candidate& candidate) {
  if (candidate.adapter >= 0) return runner_->run(attempt_of(data, candidate));
  VALORA_TRY(step, alone(data, candidate.rank));
  step.adapter = fmt::format("adapter-{}", state_.adapters.size() + 1);
  return step;
}

void Fusion::keep(const TaskData& data, const Candidate& candidate, const Attempt& attempt, FusionStep& step) {
  step.kept = true;
  if (candidate.adapter < 0) {
    state_.adapters.push_back({step.adapter, work(fmt::format("alone-{}-{}", data.task.name, candidate.rank)), candidate.rank, {data.task.name}});
    return;
  }
  OpenAdapter& adapter = state_.adapters[static_cast<size_t>(candidate.adapter)];
  adapter.kept = attempt.folder;
  adapter.rank = candidate.rank;
  adapter.tasks.push_back(data.task.name);
}

Status Fusion::place(const TaskData& data) {
  const std::vector<Candidate> list = candidates();
  while (state_.attempt < list.size()) {
    const Candidate& candidate = list[state_.attempt];
    VALORA_TRY(step, try_candidate(data, candidate));
    if (step.failed.empty()) {
      step.why = candidate.adapter < 0 ? "kept in an adapter of its own" : "kept";
      keep(data, candidate, candidate.adapter < 0 ? Attempt{} : attempt_of(data, candidate), step);
      state_.report.steps.push_back(step);
      events_.step(step);
      return {};
    }
    step.why = "rolled back: " + failures(step, data_);
    state_.report.steps.push_back(step);
    events_.step(step);
    ++state_.attempt;
    VALORA_CHECK(save());
  }
  return keep_best_of_own(data);
}

// Not even alone does the task reach its floor: the best of what was tried is served, and marked.
Status Fusion::keep_best_of_own(const TaskData& data) {
  const FusionStep* best = nullptr;
  for (const FusionStep& step : state_.alone)
    if (step.task == data.task.name && (!best || step.accuracies.at(step.task) > best->accuracies.at(step.task))) best = &step;
  FusionStep step = *best;
  step.adapter = fmt::format("adapter-{}", state_.adapters.size() + 1);
  step.why = "kept below its floor, which no adapter of its own reached: " + failures(step, data_);
  keep(data, {-1, step.rank, true}, {}, step);
  state_.report.steps.push_back(step);
  events_.step(step);
  return {};
}

Status Fusion::finish() {
  Manifest manifest;
  FusionReport& report = state_.report;
  report.adapters.clear();
  for (const OpenAdapter& adapter : state_.adapters) {
    std::vector<const TaskData*> tasks;
    for (const std::string& name : adapter.tasks) tasks.push_back(&data_of(name));
    VALORA_TRY(shape, runner_->shape_of(tasks, adapter.rank));
    VALORA_TRY(parameters, runner_->load(shape, adapter.kept, 0));
    const std::string folder = options_.output + "/adapters/" + adapter.name;
    VALORA_CHECK(runner_->write(folder, parameters, tasks, options_.bfloat16 && model_->loaded.dtype == at::kBFloat16));
    ReportedAdapter reported{adapter.name, "adapters/" + adapter.name, static_cast<int>(adapter.rank), folder_bytes(folder), adapter.tasks};
    for (const FusionStep& step : report.steps)
      if (step.kept && step.adapter == adapter.name) reported.accuracies = step.accuracies, reported.below_floor = step.failed;
    for (const TaskData* data : tasks) {
      ManifestEntry entry{fs::absolute(folder).lexically_normal().string(), std::nullopt, data->task.question, metric_name(data->task.metric)};
      if (!data->head.empty()) entry.head = data->head;
      entry.floor = data->task.floor;
      entry.accuracy = reported.accuracies.at(data->task.name);
      manifest.tasks[data->task.name] = std::move(entry);
    }
    report.adapters.push_back(std::move(reported));
  }
  for (ReportedTask& task : report.tasks)
    for (const FusionStep& step : state_.alone)
      if (step.task == task.name) task.alone = std::max(task.alone.value_or(0), step.accuracies.at(task.name));
  report.peak_bytes = peak_resident_bytes();
  VALORA_CHECK(write_manifest(manifest, options_.output + "/manifest.json"));
  VALORA_CHECK(write_file(options_.output + "/report.json", to_json(report).dump(2) + "\n"));
  VALORA_CHECK(write_file(options_.output + "/report.html", to_html(report)));
  state_.done = true;
  VALORA_CHECK(save());
  std::error_code ignored;
  fs::remove_all(options_.output + "/work", ignored);
  return {};
}

Result<FusionReport> Fusion::run(std::vector<Task> tasks) {
  std::error_code fault;
  fs::create_directories(options_.output + "/work", fault);
  if (fault) return unprocessable(options_.output + " could not be made: " + fault.message(), "output");
  VALORA_TRY(lock, FolderLock::take(options_.output));
  VALORA_CHECK(open(std::move(tasks)));
  if (state_.done) return state_.report;
  const RealClock clock;
  TimePoint begin = clock.now();
  // What is saved counts the time so far, over all runs.
  const auto count_time = [&] {
    const TimePoint now = clock.now();
    state_.report.seconds += seconds(now - begin);
    begin = now;
  };
  VALORA_CHECK(measure_base());
  VALORA_CHECK(train_alone());
  while (state_.next < state_.order.size()) {
    VALORA_CHECK(place(data_of(state_.order[state_.next])));
    ++state_.next;
    state_.attempt = 0;
    count_time();
    VALORA_CHECK(save());
  }
  count_time();
  VALORA_CHECK(finish());
  return state_.report;
}

}  // namespace valora::generator
