// Tables of the fusion page.
#include <fmt/format.h>

#include <algorithm>

#include "generator/data/fusion_page.h"
#include "report/html.h"
#include "report/numbers.h"
#include "report/style.h"

namespace valora::generator {
namespace {

using report::cell;
using report::Column;
using report::decimal;
using report::duration;
using report::escaped;
using report::number_cell;
using report::percent;
using report::row_name;

// The task's name after a dot in its colour.
std::string task_name(const FusionReport& report, const std::string& name) {
  return fmt::format("<i class=\"dot {}\"></i>{}", report::colour_class(place_of(report, name)),
                     escaped(name));
}

std::string fused_cell(const ReportedTask& task, std::optional<double> accuracy) {
  if (!accuracy) return cell("–", "n");
  if (!task.floor) return cell("<b>" + percent(accuracy) + "</b>", "n");
  const bool held = holds_floor(task, *accuracy);
  return cell(fmt::format("<b>{}</b> <span class=\"{}\">{}</span>", percent(accuracy),
                          held ? "good" : "bad", held ? "✓" : "below"),
              "n");
}

std::string samples(const ReportedTask& task) {
  std::string text = fmt::format("{} + {}", task.train_samples, task.validation_samples);
  return task.dropped ? text + fmt::format(", {} dropped", task.dropped) : text;
}

std::string task_row(const FusionReport& report, const ReportedTask& task) {
  const ReportedAdapter* home = adapter_of_task(report, task.name);
  const auto accuracy = fused_accuracy(report, task);
  return "<tr>" + row_name(task_name(report, task.name)) + cell(escaped(task.type)) +
         cell(escaped(task.metric)) + number_cell(percent(task.base)) +
         number_cell(percent(task.chance)) + number_cell(percent(task.alone)) +
         fused_cell(task, accuracy) + number_cell(percent(task.floor)) +
         number_cell(accuracy ? report::gain(task.base, *accuracy) : "–") +
         cell(home ? escaped(home->name) : "none") + number_cell(samples(task)) + "</tr>\n";
}

std::string names(const FusionReport& report, const ReportedAdapter& adapter) {
  std::string out;
  for (const std::string& task : adapter.tasks) {
    const bool below = std::find(adapter.below_floor.begin(), adapter.below_floor.end(), task) !=
                       adapter.below_floor.end();
    out += fmt::format("<span class=\"task\">{}{}</span> ", task_name(report, task),
                       below ? " <span class=\"bad\">below</span>" : "");
  }
  return out;
}

std::string rank_text(int rank, bool activated) {
  return std::to_string(rank) + (activated ? ", activated" : "");
}

std::string adapter_row(const FusionReport& report, const ReportedAdapter& adapter) {
  return "<tr>" + row_name(escaped(adapter.name)) + cell(names(report, adapter), "wide") +
         number_cell(rank_text(adapter.rank, adapter.activated)) +
         number_cell(report::byte_size(adapter.bytes)) +
         cell("<code>" + escaped(adapter.path) + "</code>") + "</tr>\n";
}

std::string outcome(const FusionStep& step) {
  return step.kept ? "<span class=\"good\">kept</span>" : "<span class=\"bad\">rolled back</span>";
}

std::string step_row(const FusionReport& report, size_t i) {
  const FusionStep& step = report.steps[i];
  const std::string name = task_name(report, step.task);
  return fmt::format("<tr{}>", step.kept ? "" : " class=\"undone\"") +
         cell(std::to_string(i + 1), "n") + row_name(step.kept ? name : "<s>" + name + "</s>") +
         cell(escaped(step.adapter)) + cell(outcome(step)) + cell(escaped(step.why), "wide") +
         number_cell(rank_text(step.rank, step.activated)) +
         number_cell(std::to_string(step.samples_before)) + number_cell(duration(step.seconds)) +
         number_cell(duration(step.evaluation_seconds)) + number_cell(std::to_string(step.steps)) +
         number_cell(decimal(step.first_loss) + " → " + decimal(step.last_loss)) + "</tr>\n";
}

}  // namespace

std::string task_table(const FusionReport& report) {
  std::string rows;
  for (const ReportedTask& task : report.tasks) rows += task_row(report, task);
  const Column columns[] = {{"Task", false},    {"Type", false},  {"Metric", false},
                            {"Base", true},     {"Chance", true}, {"Alone", true},
                            {"Fused", true},    {"Floor", true},  {"Gain", true},
                            {"Adapter", false}, {"Samples", true}};
  return report::table(columns, rows);
}

std::string adapter_table(const FusionReport& report) {
  std::string rows;
  for (const ReportedAdapter& adapter : report.adapters) rows += adapter_row(report, adapter);
  const Column columns[] = {
      {"Adapter", false}, {"Tasks", false}, {"Rank", true}, {"Size", true}, {"Folder", false}};
  return report::table(columns, rows);
}

std::string step_table(const FusionReport& report) {
  std::string rows;
  for (size_t i = 0; i < report.steps.size(); ++i) rows += step_row(report, i);
  const Column columns[] = {{"", true},         {"Task", false},    {"Into", false},
                            {"Result", false},  {"Why", false},     {"Rank", true},
                            {"Replayed", true}, {"Training", true}, {"Evaluation", true},
                            {"Updates", true},  {"Loss", true}};
  return report::table(columns, rows);
}

}  // namespace valora::generator
