// Asks one task's teacher and prints the labelled data, for tests/generator/test_teachers.py.
//
// teacher_probe TASKS_FILE TASK [--model DIR] [--seed N] [--batch N] [--concurrency N]
//               [--timeout SECONDS] [--retries N] [--retry-seconds S]
// stdout: {"train": [{"origin", "question", "labels", "answer", "boxes"}], "validation": […],
//          "counts": {…}} or {"error": message}. --model: the model of an adapter teacher.
#include <algorithm>
#include <iostream>
#include <map>

#include "base/json/json.h"
#include "base/log/log.h"
#include "engine/start/start_engine.h"
#include "generator/data/tasks_file.h"
#include "generator/teacher.h"

namespace valora::generator {
namespace {

Json to_json(const std::vector<Sample>& samples) {
  Json json = Json::array();
  for (const Sample& sample : samples) {
    Json boxes = Json::array();
    for (const LabelledBox& b : sample.boxes)
      boxes.push_back({{"label", b.label}, {"box", {b.box.x0, b.box.y0, b.box.x1, b.box.y1}}});
    json.push_back({{"origin", sample.origin},
                    {"question", sample.question},
                    {"labels", sample.labels},
                    {"answer", sample.answer},
                    {"boxes", boxes}});
  }
  return json;
}

Json to_json(const TeacherCounts& c) {
  return {{"asked", c.asked},
          {"kept", c.kept},
          {"unsure", c.unsure},
          {"foreign", c.foreign},
          {"empty", c.empty},
          {"unrated", c.unrated},
          {"unsure_boxes", c.unsure_boxes},
          {"foreign_boxes", c.foreign_boxes},
          {"labels", c.labels}};
}

Result<std::unique_ptr<serving::LocalEngine>> open_engine(const std::string& model) {
  if (model.empty()) return std::unique_ptr<serving::LocalEngine>();
  EngineOptions options;
  options.model_path = model;
  options.dtype = ComputeDtype::kFloat32;
  options.threads = 1;
  options.memory.pool_bytes = int64_t{64} << 20;
  options.fetch.allowed_local_path = "/";
  return start_engine(options);
}

Result<Json> probe(const std::string& tasks_file, const std::string& name,
                   std::map<std::string, std::string> flags) {
  VALORA_TRY(tasks, read_tasks(tasks_file));
  const auto task = std::ranges::find(tasks, name, &Task::name);
  if (task == tasks.end()) return invalid(tasks_file + " has no task " + name);
  TeacherOptions options;
  const auto number = [&](const char* flag, double fallback) {
    return flags.contains(flag) ? std::stod(flags[flag]) : fallback;
  };
  options.seed = static_cast<uint64_t>(number("--seed", 0));
  options.batch = static_cast<int>(number("--batch", options.batch));
  options.concurrency = static_cast<int>(number("--concurrency", options.concurrency));
  options.timeout_seconds = number("--timeout", options.timeout_seconds);
  options.retries = static_cast<int>(number("--retries", options.retries));
  options.retry_seconds = number("--retry-seconds", options.retry_seconds);
  VALORA_TRY(engine, open_engine(flags["--model"]));
  VALORA_TRY(data, ask_teacher(*task, engine.get(), options));
  return Json{{"train", to_json(data.train)},
              {"validation", to_json(data.validation)},
              {"counts", to_json(data.counts)}};
}

}  // namespace
}  // namespace valora::generator

int main(int argc, char** argv) {
  valora::set_up_logging("warning");
  if (argc < 3) return 2;
  std::map<std::string, std::string> flags;
  for (int i = 3; i + 1 < argc; i += 2) flags[argv[i]] = argv[i + 1];
  const auto taught = valora::generator::probe(argv[1], argv[2], flags);
  const valora::Json json = taught.ok() ? *taught : valora::Json{{"error", taught.error().message}};
  std::cout << json.dump(-1, ' ', false, valora::Json::error_handler_t::replace) << std::endl;
  return 0;
}
