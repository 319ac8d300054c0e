#include "cli/eval_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/files/write_file.h"

namespace valora::cli {
namespace {

using generator::ConfusionTable;

// most labels of a confusion table; with more, the most frequent mistakes are printed instead
constexpr size_t kWidestTable = 16;
constexpr size_t kMistakes = 10;
constexpr size_t kLabelWidth = 12;

std::string short_name(const std::string& adapter) {
  if (adapter.empty()) return "base";
  return std::filesystem::path(adapter).lexically_normal().filename().string();
}

std::string model_text(const TaskResult& r) {
  return short_name(r.adapter) + (r.evaluation.head.empty() ? "" : ":" + r.evaluation.head);
}

double samples_per_second(const TaskResult& r) {
  return static_cast<double>(r.samples.size()) / std::max(r.evaluation.seconds, 1e-9);
}

// Width in characters, not bytes.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string padded(std::string text, size_t width, bool right) {
  const size_t have = width_of(text);
  if (have >= width) return text;
  const std::string room(width - have, ' ');
  return right ? room + text : text + room;
}

std::string cut(const std::string& label) {
  if (width_of(label) <= kLabelWidth) return label;
  size_t at = 0;
  for (size_t characters = 0; characters < kLabelWidth - 1; ++characters) do
      ++at;
    while (at < label.size() && (static_cast<unsigned char>(label[at]) & 0xC0) == 0x80);
  return label.substr(0, at) + "…";
}

// Left-aligns the first column and those in `left`, and right-aligns the others.
std::string table_text(const std::vector<std::vector<std::string>>& rows, size_t left,
                       const std::string& indent) {
  std::vector<size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  std::string text;
  for (const auto& row : rows) {
    std::string line = indent;
    for (size_t i = 0; i < row.size(); ++i)
      line += (i ? "  " : "") + padded(row[i], widths[i], i >= left);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

bool is_below(const TaskResult& r) {
  return r.task.floor && r.evaluation.score.value < *r.task.floor;
}

std::string floor_text(const TaskResult& r) {
  if (!r.task.floor) return "-";
  return fmt::format("{:.3f}{}", *r.task.floor, is_below(r) ? " (below)" : "");
}

std::string confusion_matrix(const ConfusionTable& table) {
  std::vector<std::vector<std::string>> rows(1, {"expected \\ answered"});
  for (const std::string& label : table.labels) rows[0].push_back(cut(label));
  rows[0].push_back("(other)");
  for (size_t i = 0; i < table.labels.size(); ++i) {
    rows.push_back({cut(table.labels[i])});
    for (const int64_t count : table.counts[i])
      rows.back().push_back(count ? std::to_string(count) : ".");
  }
  return table_text(rows, 1, "  ");
}

std::string worst_mistakes(const ConfusionTable& table) {
  struct Mistake {
    int64_t count;
    size_t row, column;
  };
  std::vector<Mistake> mistakes;
  for (size_t row = 0; row < table.labels.size(); ++row)
    for (size_t column = 0; column <= table.labels.size(); ++column)
      if (row != column && table.counts[row][column] > 0)
        mistakes.push_back({table.counts[row][column], row, column});
  std::ranges::stable_sort(mistakes, std::greater(), &Mistake::count);
  std::string text = fmt::format("  {} labels; the most frequent mistakes:\n", table.labels.size());
  for (size_t i = 0; i < std::min(kMistakes, mistakes.size()); ++i) {
    const auto& [count, row, column] = mistakes[i];
    const std::string answered = column < table.labels.size() ? table.labels[column] : "(other)";
    text += fmt::format("  {:>6}  {} answered as {}\n", count, table.labels[row], answered);
  }
  return text;
}

Json result_json(const TaskResult& r) {
  const generator::Evaluation& e = r.evaluation;
  Json json = {{"task", r.task.name},
               {"type", generator::task_type_name(r.task.type)},
               {"metric", generator::metric_name(r.task.metric)},
               {"score", e.score.value},
               {"samples", r.samples.size()},
               {"seconds", e.seconds},
               {"samples_per_second", samples_per_second(r)},
               {"latency_seconds", {{"p50", e.latency_p50}, {"p90", e.latency_p90}}},
               {"prompt_tokens", e.prompt_tokens},
               {"completion_tokens", e.completion_tokens}};
  json["adapter"] = r.adapter.empty() ? Json() : Json(r.adapter);
  json["head"] = r.evaluation.head.empty() ? Json() : Json(r.evaluation.head);
  json["floor"] = r.task.floor ? Json(*r.task.floor) : Json();
  json["confusion"] = nullptr;
  if (e.confusion)
    json["confusion"] = {{"labels", e.confusion->labels}, {"counts", e.confusion->counts}};
  return json;
}

Json prediction_json(const TaskResult& r, size_t i) {
  const generator::Sample& sample = r.samples[i];
  const generator::Prediction& prediction = r.evaluation.predictions[i];
  Json json = {{"task", r.task.name},
               {"origin", sample.origin},
               {"question", sample.question},
               {"answer", sample.answer}};
  json["adapter"] = r.adapter.empty() ? Json() : Json(r.adapter);
  json["prediction"] = r.evaluation.head.empty() ? Json(prediction.text) : Json(prediction.labels);
  json["score"] = r.evaluation.score.of_samples[i];
  if (!sample.labels.empty()) json["labels"] = sample.labels;
  if (!sample.references.empty()) json["references"] = sample.references;
  for (const generator::LabelledBox& b : sample.boxes)
    json["boxes"].push_back(
        {{"label", b.label}, {"box", {b.box.x0, b.box.y0, b.box.x1, b.box.y1}}});
  return json;
}

}  // namespace

bool misses_a_floor(const std::vector<TaskResult>& results) {
  const bool adapters = std::ranges::any_of(
      results, [](const TaskResult& result) { return !result.adapter.empty(); });
  return std::ranges::any_of(results, [&](const TaskResult& result) {
    return is_below(result) && (!adapters || !result.adapter.empty());
  });
}

std::string eval_text(const std::vector<TaskResult>& results) {
  std::vector<std::vector<std::string>> rows(
      1, {"task", "model", "metric", "score", "floor", "samples", "samples/s", "p50 s", "p90 s"});
  for (const TaskResult& r : results)
    rows.push_back({r.task.name, model_text(r), generator::metric_name(r.task.metric),
                    fmt::format("{:.4f}", r.evaluation.score.value), floor_text(r),
                    std::to_string(r.samples.size()), fmt::format("{:.1f}", samples_per_second(r)),
                    fmt::format("{:.3f}", r.evaluation.latency_p50),
                    fmt::format("{:.3f}", r.evaluation.latency_p90)});
  std::string text = table_text(rows, 3, "");
  for (const TaskResult& r : results) {
    const auto& confusion = r.evaluation.confusion;
    if (!confusion) continue;
    text += "\n" + r.task.name + ", " + model_text(r) + "\n";
    text += confusion->labels.size() > kWidestTable ? worst_mistakes(*confusion)
                                                    : confusion_matrix(*confusion);
  }
  return text;
}

Json eval_json(const ModelCard& model, const std::vector<TaskResult>& results) {
  Json json = {{"model", model.name},
               {"architecture", model.architecture},
               {"dtype", model.dtype},
               {"device", model.device}};
  json["results"] = Json::array();
  for (const TaskResult& r : results) json["results"].push_back(result_json(r));
  return json;
}

Status write_predictions(const std::string& path, const std::vector<TaskResult>& results) {
  std::string lines;
  for (const TaskResult& r : results)
    for (size_t i = 0; i < r.samples.size(); ++i)
      lines += prediction_json(r, i).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  return write_file(path, lines);
}

}  // namespace valora::cli
