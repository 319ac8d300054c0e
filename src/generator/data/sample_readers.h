// One reader per format of a data source (docs/tasks.md). Torch-free.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "generator/data/sample_checks.h"
#include "generator/data/task.h"

namespace valora::generator {

// Reads a line of a JSONL file. `where` is its "FILE:LINE", used as the sample's origin and at the
// start of every error.
Result<Sample> read_jsonl_line(std::string_view line, const std::string& where,
                               const std::string& media_root, const SampleChecks& checks);

// Each returns at least one sample and stops at the source's limit.
Result<std::vector<Sample>> read_jsonl(const DataSource& source, const SampleChecks& checks);
Result<std::vector<Sample>> read_coco(const DataSource& source, const Task& task,
                                      const SampleChecks& checks);
Result<std::vector<Sample>> read_class_folders(const DataSource& source, const Task& task,
                                               const SampleChecks& checks);
Result<std::vector<Sample>> read_media_folder(const DataSource& source, const Task& task);

}  // namespace valora::generator
