// Reads COCO's detection JSON as samples of detection and of grounding.
#include "base/json/json.h"
#include "data_folder.h"
#include "generator/data/datasets.h"

using namespace valora;
using namespace valora::generator;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const testing::TempDir& dir = fuzz::data_folder();
  DataSource source;
  source.format = DataSource::Format::kCoco;
  source.path = dir.write("data.json", {reinterpret_cast<const char*>(data), size});
  for (const TaskType type : {TaskType::kDetection, TaskType::kGrounding}) {
    Task task;
    task.type = type;
    auto samples = read_samples(source, task);
    if (!samples.ok()) {
      FUZZ_CHECK(samples.error().message.starts_with(source.path + ": "));
      (void)Json(samples.error().message).dump();  // the message must be valid UTF-8
      continue;
    }
    for (const Sample& sample : *samples) {
      fuzz::check_sample(sample);
      FUZZ_CHECK(!sample.boxes.empty());
      for (const LabelledBox& box : sample.boxes) FUZZ_CHECK(!box.label.empty());
    }
    FUZZ_CHECK(apply_templates(task, *samples).ok());
  }
  return 0;
}
