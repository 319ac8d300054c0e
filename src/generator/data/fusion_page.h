// The parts of the fusion page (fusion_report.h: to_html). Torch-free.
#pragma once

#include <string>
#include <vector>

#include "generator/data/fusion_report.h"

namespace valora::generator {

extern const char* const kPageStyle;  // CSS of the page and its pictures, for light and dark

// The adapter that a task came to rest in; null where none holds it.
const ReportedAdapter* home_of(const FusionReport& report, const std::string& task);
// In that adapter; none where it holds none.
std::optional<double> fused_accuracy(const FusionReport& report, const ReportedTask& task);
bool holds_floor(const ReportedTask& task, double accuracy);  // a task without a floor always does

// A picture for each adapter that was trained: the accuracy of its tasks after each step.
std::string fusion_charts(const FusionReport& report);
std::string task_table(const FusionReport& report);
std::string adapter_table(const FusionReport& report);
std::string step_table(const FusionReport& report);

// The class of a task's colour, and which of the marker's four forms it has: its place in the
// report's tasks.
constexpr size_t kColours = 8;
size_t place_of(const FusionReport& report, const std::string& task);

}  // namespace valora::generator
