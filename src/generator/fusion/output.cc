// Writes the results of a fusion: the final adapters, the manifest and the reports.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>

#include "api/engine.h"
#include "base/files/write_file.h"
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

Status Fusion::save_state() {
  state_.peak_bytes = std::max(state_.peak_bytes, peak_resident_bytes());
  return write_state(options_.output + "/state.json", state_);
}

ReportedAdapter Fusion::reported(const OpenAdapter& adapter, const std::string& folder) const {
  const std::string path = "adapters/" + folder;
  ReportedAdapter reported{adapter.name,
                           path,
                           static_cast<int>(adapter.rank),
                           !adapter.invocation.empty(),
                           folder_bytes(options_.output + "/" + path),
                           adapter.tasks};
  for (const FusionStep& step : report_.steps)
    if (step.kept && step.adapter == adapter.name)
      reported.accuracies = step.accuracies, reported.below_floor = step.failed;
  return reported;
}

ManifestEntry Fusion::entry_of(const TaskData& data, const ReportedAdapter& home) const {
  const fs::path folder = fs::absolute(options_.output) / home.path;
  ManifestEntry entry{folder.lexically_normal().string(), std::nullopt, data.question,
                      metric_name(data.task.metric)};
  if (!data.head.empty()) entry.head = data.head;
  entry.floor = data.task.floor;
  entry.labels = data.labels;
  if (has_boxes(data.task.type)) entry.boxes = data.task.boxes;
  entry.accuracy = home.accuracies.at(data.task.name);
  return entry;
}

void Fusion::report_separate_runs() {
  if (!options_.alone) return;
  for (ReportedTask& task : report_.tasks) {
    const std::string lineage =
        fmt::format("{}@{}", key_of(data_of(task.name)), options_.ranks.front());
    task.alone = state_.attempts.at(lineage).accuracies.at(task.name);
  }
}

// Writes the new adapters next to the old ones. Renaming the new manifest into place then switches
// to all of them at once.
Status Fusion::finish() {
  Manifest manifest;
  for (const OpenAdapter& adapter : adapters_) {
    std::vector<const TaskData*> tasks;
    for (const std::string& name : adapter.tasks) tasks.push_back(&data_of(name));
    VALORA_TRY(folder, install(adapter, tasks));
    report_.adapters.push_back(reported(adapter, folder));
    for (const TaskData* data : tasks)
      manifest.tasks[data->task.name] = entry_of(*data, report_.adapters.back());
  }
  report_separate_runs();
  VALORA_CHECK(save_state());
  report_.peak_bytes = state_.peak_bytes;
  VALORA_CHECK(write_manifest(manifest, options_.output + "/manifest.json"));
  VALORA_CHECK(write_file(options_.output + "/report.json", to_json(report_).dump(2) + "\n"));
  VALORA_CHECK(write_file(options_.output + "/report.html", to_html(report_)));
  return drop_other_adapters();
}

}  // namespace valora::generator
