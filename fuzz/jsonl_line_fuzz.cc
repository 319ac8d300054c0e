// A line of JSONL, read as a sample of the task chosen by the first input byte. Also builds its
// question and answer, and parses the boxes in the answer.
#include "base/json/json.h"
#include "data_folder.h"
#include "generator/data/box_text.h"
#include "generator/data/datasets.h"
#include "generator/data/sample_readers.h"
#include "input.h"

using namespace valora;
using namespace valora::generator;

namespace {

// The last task has a head with several labels.
Task task_of(uint8_t choice) {
  Task task;
  const size_t types = std::size(kTaskTypes);
  task.type = kTaskTypes[choice % (types + 1) % types];
  task.metric = metrics_of(task.type).front();
  if (choice % (types + 1) == types) task.head = HeadSpec{.multi_label = true};
  if (choice & 0x40) task.labels = {"cat", "dog"};
  if (choice & 0x80) task.boxes = {.scale = 100, .labels = false};
  return task;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const testing::TempDir& dir = fuzz::data_folder();
  fuzz::Input input(data, size);
  const Task task = task_of(input.byte());
  const std::string answer(input.rest());
  (void)read_boxes(answer, task.boxes);

  const SampleChecks checks(task, true);
  const auto sample = read_jsonl_line(input.rest(), "data.jsonl:7", dir.path(), checks);
  if (!sample.ok()) {
    FUZZ_CHECK(sample.error().message.starts_with("data.jsonl:7: "));
    (void)Json(sample.error().message).dump();  // the message must be valid UTF-8
    return 0;
  }
  fuzz::check_sample(*sample);
  std::vector<Sample> samples{*sample};
  if (!apply_templates(task, samples).ok()) return 0;
  FUZZ_CHECK(!samples[0].question.empty() && !samples[0].answer.empty());
  // A label may itself parse as a box, so there may be more.
  if (has_boxes(task.type))
    FUZZ_CHECK(read_boxes(samples[0].answer, task.boxes).size() >= sample->boxes.size());
  return 0;
}
