// Charts of the fusion page, one per adapter: steps from left to right, accuracy upwards.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text/strings.h"
#include "generator/data/fusion_page.h"
#include "report/html.h"
#include "report/numbers.h"
#include "report/style.h"
#include "report/svg.h"

namespace valora::generator {
namespace {

using report::kLabelHeight;
using report::kLetterWidth;
using report::percent;

constexpr double kColumn = 68, kTop = 24, kHeight = 250;  // pixels
constexpr double kSlope = 0.6;  // of slanted labels: their sine and approximate cosine
constexpr size_t kLongestLabel = 28;

struct Point {
  size_t column;
  double accuracy;
};

// The points of one of the adapter's tasks. A step started from the last kept point before it.
struct Line {
  std::string task;
  std::vector<Point> kept, undone;
};

struct Panel {
  std::string adapter;
  std::vector<size_t> steps;  // indices into the report's steps, one per column
  std::vector<Line> lines;
};

std::string name_of(const std::string& text) { return shortened(text, kLongestLabel); }

Line& line_of(Panel& panel, const std::string& task) {
  for (Line& line : panel.lines)
    if (line.task == task) return line;
  return panel.lines.emplace_back(Line{task, {}, {}});
}

std::vector<Panel> panels_of(const FusionReport& report) {
  std::vector<Panel> panels;
  for (size_t i = 0; i < report.steps.size(); ++i) {
    const FusionStep& step = report.steps[i];
    auto panel = std::find_if(panels.begin(), panels.end(),
                              [&](const Panel& p) { return p.adapter == step.adapter; });
    if (panel == panels.end()) panel = panels.insert(panels.end(), Panel{step.adapter, {}, {}});
    for (const auto& [task, accuracy] : step.accuracies) {
      if (!std::isfinite(accuracy)) continue;
      Line& line = line_of(*panel, task);
      (step.kept ? line.kept : line.undone)
          .push_back({panel->steps.size(), std::clamp(accuracy, 0.0, 1.0)});
    }
    panel->steps.push_back(i);
  }
  return panels;
}

const ReportedTask* task_of(const FusionReport& report, const std::string& name) {
  const size_t place = place_of(report, name);
  return place < report.tasks.size() ? &report.tasks[place] : nullptr;
}

// Distance between axis labels in per cent.
int tick_above(double low) { return low < 0.5 ? 20 : 10; }

// The axis starts below the lowest value shown. All charts share it.
double lowest_shown(const FusionReport& report) {
  double lowest = 0.8;
  for (const FusionStep& step : report.steps)
    for (const auto& [task, accuracy] : step.accuracies)
      if (std::isfinite(accuracy)) lowest = std::min(lowest, accuracy);
  for (const ReportedTask& task : report.tasks) lowest = std::min(lowest, task.floor.value_or(1));
  const double tick = tick_above(lowest) / 100.0;
  return std::max(0.0, tick * std::floor((lowest - 0.02) / tick));
}

// One adapter's chart.
class Picture {
 public:
  Picture(const FusionReport& report, const Panel& panel, double low)
      : report_(report), panel_(panel) {
    size_t longest = 1;
    for (const size_t step : panel.steps)
      longest = std::max(longest, name_of(report.steps[step].task).size());
    const double width = static_cast<double>(longest) * kLetterWidth;  // of the labels below
    slanted_ = width > kColumn - 8;
    left_ = slanted_ ? std::max(42.0, 0.8 * (width + 12) - kColumn / 2 + 4) : 42;
    below_ = slanted_ ? kSlope * (width + 12) + 34 : 46;
    right_ = left_ + kColumn * static_cast<double>(panel.steps.size());
    const double names_height = static_cast<double>(panel.lines.size()) * kLabelHeight;
    scale_ = {low, 1, kTop, std::max(kHeight, names_height)};
  }

  std::string draw() {
    draw_axis();
    for (size_t column = 0; column < panel_.steps.size(); ++column) draw_column(column);
    for (const Line& line : panel_.lines) draw_line(line);
    draw_names();
    return svg_.element("Accuracy of the tasks in " + panel_.adapter + " after each step",
                        right_ + names_width_ + 8, scale_.foot() + below_);
  }

 private:
  double x(size_t column) const { return left_ + kColumn * (static_cast<double>(column) + 0.5); }
  std::string colour(const std::string& task) const {
    return report::colour_class(place_of(report_, task));
  }

  void draw_axis() {
    const int tick = tick_above(scale_.low);
    for (int value = 100; value >= std::lround(100 * scale_.low); value -= tick)
      svg_.grid_line(left_, right_, scale_.y(value / 100.0), std::to_string(value));
  }

  // Draws the step's number and task below the column, a band if it was rolled back, and the floors
  // of its task and of tasks that it failed.
  void draw_column(size_t column) {
    const FusionStep& step = report_.steps[panel_.steps[column]];
    const double middle = x(column), foot = scale_.foot();
    if (!step.kept) {
      svg_.bar("undone", middle - kColumn / 2 + 2, kTop, kColumn - 4, scale_.height, step.why);
      svg_.text("verdict", middle, kTop - 6, "rolled back");
    }
    svg_.text("step", middle, foot + 16, std::to_string(panel_.steps[column] + 1));
    svg_.column_label("name " + colour(step.task) + (step.kept ? "" : " struck"),
                      slanted_ ? middle + 6 : middle, slanted_ ? foot + 30 : foot + 33,
                      name_of(step.task), slanted_);
    draw_floor(column, step.task);
    for (const std::string& task : step.failed)
      if (task != step.task) draw_floor(column, task);
  }

  void draw_floor(size_t column, const std::string& name) {
    const ReportedTask* task = task_of(report_, name);
    if (!task || !task->floor) return;
    const double at = scale_.y(std::clamp(*task->floor, 0.0, 1.0));
    svg_.line("floor " + colour(name), x(column) - 0.36 * kColumn, at, x(column) + 0.36 * kColumn,
              at, "floor of " + name + ": " + percent(task->floor) + " %");
  }

  void draw_line(const Line& line) {
    const std::string c = colour(line.task);
    for (size_t i = 0; i + 1 < line.kept.size(); ++i)
      connect("kept " + c, line.kept[i], line.kept[i + 1]);
    if (!line.kept.empty()) {
      const double at = scale_.y(line.kept.back().accuracy);
      svg_.line("rest " + c, x(line.kept.back().column), at, right_, at);
    }
    for (const Point& point : line.undone) {
      const auto later = [&](const Point& kept) { return kept.column > point.column; };
      const auto from = std::find_if(line.kept.begin(), line.kept.end(), later);
      if (from != line.kept.begin()) connect("tried " + c, *(from - 1), point);
      draw_point(line.task, point, false);
    }
    for (const Point& point : line.kept) draw_point(line.task, point, true);
  }

  void connect(const std::string& css, const Point& a, const Point& b) {
    svg_.line(css, x(a.column), scale_.y(a.accuracy), x(b.column), scale_.y(b.accuracy));
  }

  void draw_point(const std::string& task, const Point& point, bool kept) {
    const FusionStep& step = report_.steps[panel_.steps[point.column]];
    const double px = x(point.column), py = scale_.y(point.accuracy);
    const bool failed =
        std::find(step.failed.begin(), step.failed.end(), task) != step.failed.end();
    if (failed) svg_.circle("failed", px, py, 8);
    const auto mark =
        static_cast<report::Mark>(place_of(report_, task) / report::kColours % report::kMarks);
    svg_.mark(mark, (kept ? "point " : "point hollow ") + colour(task), px, py,
              fmt::format("{} after step {}{}: {} %{}", task, panel_.steps[point.column] + 1,
                          kept ? "" : ", rolled back", percent(point.accuracy),
                          failed ? ", below its floor" : ""));
  }

  // Draws the names at the right end, moved apart if lines end close together.
  void draw_names() {
    std::vector<const Line*> ending;
    for (const Line& each : panel_.lines)
      if (!each.kept.empty()) ending.push_back(&each);
    std::stable_sort(ending.begin(), ending.end(), [](const Line* a, const Line* b) {
      return a->kept.back().accuracy > b->kept.back().accuracy;
    });
    std::vector<double> ends;
    for (const Line* each : ending) ends.push_back(scale_.y(each->kept.back().accuracy));
    const std::vector<double> at = report::spread_labels(ends, scale_.foot());
    for (size_t i = 0; i < ending.size(); ++i) {
      const std::string c = colour(ending[i]->task), name = name_of(ending[i]->task);
      svg_.line("rest " + c, right_, ends[i], right_ + 10, at[i]);
      svg_.series_label("name " + c, right_ + 14, at[i] + 4, name,
                        percent(ending[i]->kept.back().accuracy));
      names_width_ =
          std::max(names_width_, 14 + kLetterWidth * static_cast<double>(name.size() + 5));
    }
  }

  const FusionReport& report_;
  const Panel& panel_;
  report::Scale scale_;
  bool slanted_ = false;
  double left_ = 0, right_ = 0, below_ = 0, names_width_ = 0;
  report::Svg svg_;
};

std::string remark(const FusionReport& report, const Panel& panel) {
  const auto undone = static_cast<size_t>(std::count_if(
      panel.steps.begin(), panel.steps.end(), [&](size_t i) { return !report.steps[i].kept; }));
  std::string text = report::counted(panel.steps.size() - undone, "step") + " kept";
  if (undone) text += ", " + std::to_string(undone) + " rolled back";
  for (const ReportedAdapter& adapter : report.adapters)
    if (adapter.name == panel.adapter)
      text += fmt::format("; rank {}, {}", adapter.rank, report::byte_size(adapter.bytes));
  return text;
}

}  // namespace

std::string fusion_charts(const FusionReport& report) {
  const double low = lowest_shown(report);
  std::string out = "<div class=\"panels\">\n";
  for (const Panel& panel : panels_of(report))
    out += report::figure(panel.adapter, remark(report, panel), Picture(report, panel, low).draw());
  return out + "</div>\n";
}

}  // namespace valora::generator
