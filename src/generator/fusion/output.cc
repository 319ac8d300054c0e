// What a fusion leaves behind: the final adapters, the manifest and the reports.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>

#include "base/write_file.h"
#include "engine/serving_engine.h"
#include "generator/fusion/fusion.h"

namespace valora::generator {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

Status Fusion::finish() {
  Manifest manifest;
  for (const OpenAdapter& adapter : adapters_) {
    std::vector<const TaskData*> tasks;
    for (const std::string& name : adapter.tasks) tasks.push_back(&data_of(name));
    VALORA_TRY(shape, runner_->shape_of(tasks, adapter.rank));
    VALORA_TRY(parameters, runner_->load(shape, folder_of(adapter.lineage), 0));
    const std::string folder = options_.output + "/adapters/" + adapter.name;
    VALORA_CHECK(runner_->write(folder, parameters, tasks,
                                options_.bfloat16 && model_->loaded.dtype == at::kBFloat16));
    ReportedAdapter reported{adapter.name, "adapters/" + adapter.name,
                             static_cast<int>(adapter.rank), folder_bytes(folder), adapter.tasks};
    for (const FusionStep& step : report_.steps)
      if (step.kept && step.adapter == adapter.name)
        reported.accuracies = step.accuracies, reported.below_floor = step.failed;
    for (const TaskData* data : tasks) {
      ManifestEntry entry{fs::absolute(folder).lexically_normal().string(), std::nullopt,
                          data->task.question, metric_name(data->task.metric)};
      if (!data->head.empty()) entry.head = data->head;
      entry.floor = data->task.floor;
      entry.labels = data->task.labels;
      if (has_boxes(data->task.type)) entry.boxes = data->task.boxes;
      entry.accuracy = reported.accuracies.at(data->task.name);
      manifest.tasks[data->task.name] = std::move(entry);
    }
    report_.adapters.push_back(std::move(reported));
  }
  if (options_.alone)
    for (ReportedTask& task : report_.tasks)
      task.alone = state_.attempts
                       .at(fmt::format("{}@{}", key_of(data_of(task.name)), options_.ranks.front()))
                       .accuracies.at(task.name);
  report_.peak_bytes = peak_resident_bytes();
  VALORA_CHECK(drop_other_adapters());
  VALORA_CHECK(write_manifest(manifest, options_.output + "/manifest.json"));
  VALORA_CHECK(write_file(options_.output + "/report.json", to_json(report_).dump(2) + "\n"));
  return write_file(options_.output + "/report.html", to_html(report_));
}

// Removes adapters of an earlier run with other floors.
Status Fusion::drop_other_adapters() const {
  std::error_code fault;
  for (const auto& entry : fs::directory_iterator(options_.output + "/adapters", fault))
    if (std::ranges::find(adapters_, entry.path().filename().string(), &OpenAdapter::name) ==
        adapters_.end())
      fs::remove_all(entry.path(), fault);
  return fault ? Status(unprocessable(options_.output + "/adapters: " + fault.message(), "output"))
               : Status();
}

}  // namespace valora::generator
