// A made-up fusion report with every case: roll-backs, missed floors, tasks without floors.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "generator/data/fusion_report.h"

namespace valora::testing {

// A report with `tasks` tasks in several adapters. Every third task is rolled back once and opens
// another adapter.
inline generator::FusionReport example_report(int tasks) {
  const std::vector<std::string> kinds{"digits",        "licence-plates", "traffic-signs",
                                       "vegetation",    "captions",       "bicycles",
                                       "video-actions", "who-is-where"};
  generator::FusionReport report;
  report.model = "models/vision-2b";
  report.options = {{"order", "given"}, {"replay", 0.3}, {"seed", 7}};
  report.seconds = 4520;
  report.peak_bytes = size_t{3} << 30;
  std::vector<std::string> held;
  for (int i = 0; i < tasks; ++i) {
    const std::string name = kinds[static_cast<size_t>(i) % kinds.size()] +
                             (i < 8 ? "" : "-" + std::to_string(i / 8 + 1));
    const double reached = 0.95 - 0.03 * (i % 8);
    generator::ReportedTask task{
        name, "classification",   "top1", {}, 0.1 + 0.05 * (i % 7), {}, {}, 1000,
        200,  i % 4 == 0 ? 12 : 0};
    if (i % 5 != 4) task.floor = reached - 0.06;
    if (i % 2 == 0) task.chance = 0.1, task.alone = reached + 0.02;
    report.tasks.push_back(task);

    generator::FusionStep step{
        name,
        "adapter-" + std::to_string(report.adapters.size() + (report.adapters.empty() ? 1 : 0)),
        16};
    step.seconds = 40 + 7 * i, step.evaluation_seconds = 6.5, step.first_loss = 2.31,
    step.last_loss = 0.114, step.steps = 250;
    if (report.adapters.empty())
      report.adapters.push_back({"adapter-1", "fused/adapter-1", 16, false, 3'145'728, {}, {}, {}});
    for (size_t k = 0; k < held.size(); ++k)
      step.accuracies[held[k]] = report.adapters.back().accuracies[held[k]] - 0.008 * (i % 3);
    step.accuracies[name] = reached;
    step.samples_before = 300 * static_cast<int>(held.size());
    if (i % 3 == 0 && !held.empty()) {
      step.accuracies[held[0]] -= 0.14;
      step.failed = {held[0]};
      step.why = "rolled back: " + held[0] + " fell below its floor";
      report.steps.push_back(step);
      report.adapters.push_back({"adapter-" + std::to_string(report.adapters.size() + 1),
                                 "",
                                 16,
                                 false,
                                 3'145'728,
                                 {},
                                 {},
                                 {}});
      report.adapters.back().path = "fused/" + report.adapters.back().name;
      held.clear();
      step.adapter = report.adapters.back().name;
      step.accuracies = {{name, reached}};
      step.failed.clear();
      step.samples_before = 0;
    }
    step.kept = true;
    step.why = "kept";
    report.steps.push_back(step);
    held.push_back(name);
    report.adapters.back().tasks = held;
    report.adapters.back().accuracies = step.accuracies;
  }
  return report;
}

}  // namespace valora::testing
