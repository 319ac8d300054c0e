// Pictures of the fusion page, one for each adapter: from left to right the steps that went into
// it, upwards the accuracy.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "generator/data/fusion_page.h"
#include "generator/data/page_text.h"

namespace valora::generator {
namespace {

constexpr double kColumn = 68, kTop = 24, kHeight = 250, kLetter = 6.6,
                 kLabelHeight = 15;  // pixels
constexpr double kSlope = 0.6;       // of slanted texts: sine and, nearly, cosine
constexpr size_t kLongestName = 28;

struct Point {
  size_t column;
  double accuracy;
};

// What a step did to one task of the adapter; the state that it was trained from is the last kept
// point before it.
struct Line {
  std::string task;
  std::vector<Point> kept, undone;
};

struct Panel {
  std::string adapter;
  std::vector<size_t> steps;  // of the report; each has a column
  std::vector<Line> lines;
};

std::string name_of(const std::string& text) { return shortened(text, kLongestName); }

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

// Per cent between the axis's numbers.
int tick_above(double low) { return low < 0.5 ? 20 : 10; }

// The axis begins at a number below all that is shown; all pictures share it.
double lowest_shown(const FusionReport& report) {
  double lowest = 0.8;
  for (const FusionStep& step : report.steps)
    for (const auto& [task, accuracy] : step.accuracies)
      if (std::isfinite(accuracy)) lowest = std::min(lowest, accuracy);
  for (const ReportedTask& task : report.tasks) lowest = std::min(lowest, task.floor.value_or(1));
  const double tick = tick_above(lowest) / 100.0;
  return std::max(0.0, tick * std::floor((lowest - 0.02) / tick));
}

class Picture {
 public:
  Picture(const FusionReport& report, const Panel& panel, double low)
      : report_(report), panel_(panel), low_(low) {
    size_t longest = 1;
    for (const size_t step : panel.steps)
      longest = std::max(longest, name_of(report.steps[step].task).size());
    slanted_ = static_cast<double>(longest) * kLetter > kColumn - 8;
    const double reach = static_cast<double>(longest) * kLetter + 12;  // of the names below
    left_ = slanted_ ? std::max(42.0, 0.8 * reach - kColumn / 2 + 4) : 42;
    below_ = slanted_ ? kSlope * reach + 34 : 46;
    height_ = std::max(kHeight, static_cast<double>(panel.lines.size()) * kLabelHeight);
    right_ = left_ + kColumn * static_cast<double>(panel.steps.size());
  }

  std::string draw() {
    draw_axis();
    for (size_t column = 0; column < panel_.steps.size(); ++column) draw_column(column);
    for (const Line& line : panel_.lines) draw_line(line);
    draw_names();
    const double width = right_ + names_width_ + 8, height = kTop + height_ + below_;
    return fmt::format(
        "<svg role=\"img\" aria-label=\"Accuracy of the tasks in {} after each step\" "
        "width=\"{:.0f}\" height=\"{:.0f}\" "
        "viewBox=\"0 0 {:.0f} {:.0f}\">\n{}</svg>\n",
        escaped(panel_.adapter), width, height, width, height, out_);
  }

 private:
  double x(size_t column) const { return left_ + kColumn * (static_cast<double>(column) + 0.5); }
  double y(double accuracy) const { return kTop + height_ * (1 - (accuracy - low_) / (1 - low_)); }
  std::string colour(const std::string& task) const {
    return fmt::format("c{}", place_of(report_, task) % kColours);
  }

  void line(const std::string& kind, double x0, double y0, double x1, double y1) {
    out_ += fmt::format(
        "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kind, x0,
        y0, x1, y1);
  }

  void draw_axis() {
    for (int value = 100; value >= std::lround(100 * low_); value -= tick_above(low_)) {
      const double at = y(value / 100.0);
      line("grid", left_, at, right_, at);
      out_ += fmt::format("<text class=\"axis\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", left_ - 6,
                          at + 4, value);
    }
  }

  // The step's number and task below; if it was rolled back, a band; the floors of the tasks that
  // it brought or failed.
  void draw_column(size_t column) {
    const FusionStep& step = report_.steps[panel_.steps[column]];
    if (!step.kept) {
      out_ += fmt::format(
          "<rect class=\"undone\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
          "height=\"{:.1f}\"><title>{}</title></rect>\n",
          x(column) - kColumn / 2 + 2, kTop, kColumn - 4, height_, escaped(step.why));
      out_ += fmt::format("<text class=\"verdict\" x=\"{:.1f}\" y=\"{:.1f}\">rolled back</text>\n",
                          x(column), kTop - 6);
    }
    const double foot = kTop + height_;
    out_ += fmt::format("<text class=\"step\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x(column),
                        foot + 16, panel_.steps[column] + 1);
    const std::string place =
        slanted_
            ? fmt::format("text-anchor=\"end\" transform=\"translate({:.1f},{:.1f}) rotate(-37)\"",
                          x(column) + 6, foot + 30)
            : fmt::format("text-anchor=\"middle\" x=\"{:.1f}\" y=\"{:.1f}\"", x(column), foot + 33);
    out_ += fmt::format("<text class=\"name {}{}\" {}>{}</text>\n", colour(step.task),
                        step.kept ? "" : " struck", place, escaped(name_of(step.task)));
    draw_floor(column, step.task);
    for (const std::string& task : step.failed)
      if (task != step.task) draw_floor(column, task);
  }

  void draw_floor(size_t column, const std::string& name) {
    const ReportedTask* task = task_of(report_, name);
    if (!task || !task->floor) return;
    const double at = y(std::clamp(*task->floor, 0.0, 1.0));
    out_ += fmt::format(
        "<line class=\"floor {}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" "
        "y2=\"{:.1f}\"><title>floor of {}: {} %</title></line>\n",
        colour(name), x(column) - 0.36 * kColumn, at, x(column) + 0.36 * kColumn, at, escaped(name),
        percent(task->floor));
  }

  void draw_line(const Line& line_) {
    const std::string c = colour(line_.task);
    for (size_t i = 0; i + 1 < line_.kept.size(); ++i)
      connect("kept " + c, line_.kept[i], line_.kept[i + 1]);
    if (!line_.kept.empty())
      line("rest " + c, x(line_.kept.back().column), y(line_.kept.back().accuracy), right_,
           y(line_.kept.back().accuracy));
    for (const Point& point : line_.undone) {
      const auto later = [&](const Point& kept) { return kept.column > point.column; };
      const auto from = std::find_if(line_.kept.begin(), line_.kept.end(), later);
      if (from != line_.kept.begin()) connect("tried " + c, *(from - 1), point);
      draw_point(line_.task, point, false);
    }
    for (const Point& point : line_.kept) draw_point(line_.task, point, true);
  }

  void connect(const std::string& kind, const Point& a, const Point& b) {
    line(kind, x(a.column), y(a.accuracy), x(b.column), y(b.accuracy));
  }

  void draw_point(const std::string& task, const Point& point, bool kept) {
    const FusionStep& step = report_.steps[panel_.steps[point.column]];
    const double px = x(point.column), py = y(point.accuracy);
    const bool failed =
        std::find(step.failed.begin(), step.failed.end(), task) != step.failed.end();
    if (failed)
      out_ +=
          fmt::format("<circle class=\"failed\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"8\"/>\n", px, py);
    out_ += fmt::format(
        "<path class=\"{} {}\" d=\"{}\" transform=\"translate({:.1f},{:.1f})\"><title>{} after "
        "step {}{}: {} %{}</title></path>\n",
        kept ? "point" : "point hollow", colour(task), form(task), px, py, escaped(task),
        panel_.steps[point.column] + 1, kept ? "" : ", rolled back", percent(point.accuracy),
        failed ? ", below its floor" : "");
  }

  // Circle, square, triangle, diamond: tasks that share a colour differ in form.
  const char* form(const std::string& task) const {
    constexpr const char* kForms[] = {"M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z",
                                      "M-3.6,-3.6h7.2v7.2h-7.2z", "M0,-4.6L4.4,3.4H-4.4z",
                                      "M0,-5L5,0L0,5L-5,0z"};
    return kForms[place_of(report_, task) / kColours % std::size(kForms)];
  }

  // At the right end, moved apart where lines end close together.
  void draw_names() {
    std::vector<const Line*> ending;
    for (const Line& each : panel_.lines)
      if (!each.kept.empty()) ending.push_back(&each);
    std::stable_sort(ending.begin(), ending.end(), [](const Line* a, const Line* b) {
      return a->kept.back().accuracy > b->kept.back().accuracy;
    });
    std::vector<double> at;
    for (const Line* each : ending)
      at.push_back(
          std::max(y(each->kept.back().accuracy), at.empty() ? 0 : at.back() + kLabelHeight));
    double lowest = kTop + height_;
    for (size_t i = at.size(); i-- > 0; lowest = at[i] - kLabelHeight)
      at[i] = std::min(at[i], lowest);
    for (size_t i = 0; i < ending.size(); ++i) {
      const double accuracy = ending[i]->kept.back().accuracy;
      const std::string c = colour(ending[i]->task), name = name_of(ending[i]->task);
      line("rest " + c, right_, y(accuracy), right_ + 10, at[i]);
      out_ += fmt::format(
          "<text class=\"name {}\" x=\"{:.1f}\" y=\"{:.1f}\">{} <tspan "
          "class=\"value\">{}</tspan></text>\n",
          c, right_ + 14, at[i] + 4, escaped(name), percent(accuracy));
      names_width_ = std::max(names_width_, 14 + kLetter * static_cast<double>(name.size() + 5));
    }
  }

  const FusionReport& report_;
  const Panel& panel_;
  const double low_;
  bool slanted_ = false;
  double left_ = 0, right_ = 0, below_ = 0, height_ = 0, names_width_ = 0;
  std::string out_;
};

std::string caption(const FusionReport& report, const Panel& panel) {
  const auto undone = static_cast<size_t>(std::count_if(
      panel.steps.begin(), panel.steps.end(), [&](size_t i) { return !report.steps[i].kept; }));
  std::string text = counted(panel.steps.size() - undone, "step") + " kept";
  if (undone) text += ", " + std::to_string(undone) + " rolled back";
  for (const ReportedAdapter& adapter : report.adapters)
    if (adapter.name == panel.adapter)
      text += fmt::format("; rank {}, {}", adapter.rank, byte_size(adapter.bytes));
  return "<figcaption><b>" + escaped(panel.adapter) + "</b> " + escaped(text) + "</figcaption>\n";
}

}  // namespace

std::string fusion_charts(const FusionReport& report) {
  const double low = lowest_shown(report);
  std::string out = "<div class=\"panels\">\n";
  for (const Panel& panel : panels_of(report))
    out += "<figure>" + caption(report, panel) + "<div class=\"scroll\">" +
           Picture(report, panel, low).draw() + "</div></figure>\n";
  return out + "</div>\n";
}

}  // namespace valora::generator
