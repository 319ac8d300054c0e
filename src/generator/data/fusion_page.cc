#include "generator/data/fusion_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/html.h"
#include "report/numbers.h"

namespace valora::generator {
namespace {

using report::counted;
using report::escaped;

struct Floors {
  size_t set = 0, held = 0;
};

Floors count_floors(const FusionReport& report) {
  Floors floors;
  for (const ReportedTask& task : report.tasks) {
    if (!task.floor) continue;
    ++floors.set;
    const auto accuracy = fused_accuracy(report, task);
    floors.held += accuracy && holds_floor(task, *accuracy);
  }
  return floors;
}

// Mean over all tasks that an adapter holds.
std::string mean_gain(const FusionReport& report) {
  double from = 0, to = 0, count = 0;
  for (const ReportedTask& task : report.tasks)
    if (const auto accuracy = fused_accuracy(report, task))
      from += task.base, to += *accuracy, ++count;
  return count > 0 ? report::gain(from / count, to / count) : "–";
}

std::string summary(const FusionReport& report) {
  const auto rolled_back = static_cast<size_t>(std::count_if(
      report.steps.begin(), report.steps.end(), [](const FusionStep& s) { return !s.kept; }));
  const Floors floors = count_floors(report);
  const auto noun = [](size_t count, const char* one) {
    return std::string(one) + (count == 1 ? "" : "s");
  };
  const report::Tile tiles[] = {
      {std::to_string(report.tasks.size()), noun(report.tasks.size(), "task")},
      {std::to_string(report.adapters.size()), noun(report.adapters.size(), "adapter")},
      {floors.set ? fmt::format("{} of {}", floors.held, floors.set) : "–", "floors held"},
      {mean_gain(report), "points gained on average"},
      {std::to_string(report.steps.size()),
       fmt::format("{}, {} rolled back", noun(report.steps.size(), "step"), rolled_back)},
      {report::duration(report.seconds), "in all"},
      {report::byte_size(report.peak_bytes), "of memory at most"}};
  return report::tiles(tiles);
}

std::string options(const FusionReport& report) {
  if (report.options.is_null() || report.options.empty()) return "";
  return report::folded("Options of the run",
                        report.options.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

const ReportedAdapter* adapter_of_task(const FusionReport& report, const std::string& task) {
  for (const ReportedAdapter& adapter : report.adapters)
    if (std::find(adapter.tasks.begin(), adapter.tasks.end(), task) != adapter.tasks.end())
      return &adapter;
  return nullptr;
}

std::optional<double> fused_accuracy(const FusionReport& report, const ReportedTask& task) {
  const ReportedAdapter* home = adapter_of_task(report, task.name);
  if (!home) return {};
  const auto found = home->accuracies.find(task.name);
  return found == home->accuracies.end() ? std::nullopt : std::optional(found->second);
}

bool holds_floor(const ReportedTask& task, double accuracy) {
  return !task.floor || accuracy >= *task.floor;
}

size_t place_of(const FusionReport& report, const std::string& task) {
  const auto found = std::find_if(report.tasks.begin(), report.tasks.end(),
                                  [&](const ReportedTask& t) { return t.name == task; });
  return static_cast<size_t>(found - report.tasks.begin());
}

std::string to_html(const FusionReport& report) {
  const std::string tasks = counted(report.tasks.size(), "task");
  std::string out =
      fmt::format("<h1>{} in {}</h1>\n<p class=\"lead\">Fused over <code>{}</code></p>\n", tasks,
                  counted(report.adapters.size(), "adapter"), escaped(report.model));
  out += summary(report);
  out +=
      "<h2>Tasks</h2>\n<p class=\"note\">Each on its own metric’s scale of 0 to 100. Alone: an "
      "adapter for this task and no other. Gain: fused "
      "over base, in points.</p>\n" +
      task_table(report);
  out +=
      "<h2>Step by step</h2>\n<p class=\"note\">Accuracy of every task in an adapter after each "
      "step; the task that the step brings "
      "stands below it. A bar is the floor of a task, where it comes in or is missed. A struck "
      "step was rolled back: its dashed "
      "lines lead to what the accuracies would have become.</p>\n" +
      fusion_charts(report);
  out += "<h2>Adapters</h2>\n" + adapter_table(report);
  out += "<h2>Steps</h2>\n" + step_table(report) + options(report);
  return report::page("Fusion of " + tasks, fusion_style(), out);
}

}  // namespace valora::generator
