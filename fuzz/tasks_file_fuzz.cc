// Reads a tasks file in a folder with data files that it may refer to.
#include <filesystem>

#include "base/json/json.h"
#include "check.h"
#include "generator/data/tasks_file.h"
#include "temp_folder.h"

using namespace valora;
using namespace valora::generator;

namespace {

const testing::TempDir& folder() {
  static const testing::TempDir& dir = [&]() -> const testing::TempDir& {
    const testing::TempDir& made = fuzz::temp_folder();
    std::filesystem::create_directory(made.file("pictures"));
    for (const char* file : {"a.jsonl", "b.jsonl", "boxes.json", "teacher.pt"})
      made.write(file, "");
    return made;
  }();
  return dir;
}

void check_task(const Task& task) {
  FUZZ_CHECK(!task.name.empty() && task.name[0] != '.' && task.name.find('/') == task.name.npos);
  FUZZ_CHECK(!task.floor || (*task.floor >= 0 && *task.floor <= 1));
  FUZZ_CHECK(task.weight > 0 && task.boxes.scale >= 1 && task.max_answer_tokens >= 1);
  FUZZ_CHECK(task.train.has_value() != task.teacher.has_value());
  FUZZ_CHECK(!task.train || std::filesystem::exists(task.train->path));
  FUZZ_CHECK(task.validation || (task.teacher && task.teacher->validation_share > 0));
  FUZZ_CHECK(!task.head || has_labels(task.type));
  if (task.teacher) {
    FUZZ_CHECK(task.teacher->width >= 1 && task.teacher->height >= 1);
    FUZZ_CHECK(task.teacher->mean.size() == task.teacher->deviation.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 16384) return 0;  // larger inputs are slow and add no coverage
  const std::string path =
      folder().write("tasks.yaml", {reinterpret_cast<const char*>(data), size});
  const auto tasks = read_tasks(path);
  if (!tasks.ok()) {
    FUZZ_CHECK(tasks.error().message.starts_with(path + ":"));
    (void)Json(tasks.error().message).dump();  // the message must be valid UTF-8
    return 0;
  }
  FUZZ_CHECK(!tasks->empty());
  for (const Task& task : *tasks) check_task(task);
  return 0;
}
