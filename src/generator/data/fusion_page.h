// The parts of the fusion page (fusion_report.h: to_html). Torch-free.
#pragma once

#include <string>
#include <vector>

#include "generator/data/fusion_report.h"

namespace valora::generator {

std::string fusion_style();  // CSS of the page and its pictures

// The adapter that holds a task; null if none does.
const ReportedAdapter* adapter_of_task(const FusionReport& report, const std::string& task);
// The task's accuracy in that adapter; empty if there is none.
std::optional<double> fused_accuracy(const FusionReport& report, const ReportedTask& task);
bool holds_floor(const ReportedTask& task, double accuracy);  // also true if the task has no floor

// One chart per trained adapter: the accuracy of its tasks after each step.
std::string fusion_charts(const FusionReport& report);
std::string task_table(const FusionReport& report);
std::string adapter_table(const FusionReport& report);
std::string step_table(const FusionReport& report);

// A task's index in the report, which decides the colour and mark of its points.
size_t place_of(const FusionReport& report, const std::string& task);

}  // namespace valora::generator
