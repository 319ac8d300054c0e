// The pictures and clips that the page offers for a first question (docs/page.md, samples).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace valora::server {

struct Sample {
  std::string model;  // whom to ask; empty: the base model
  std::string question;
  std::string name;          // "digits-1.png"
  std::string content_type;  // "image/png"
  std::shared_ptr<const std::string> bytes;
};

// Reads a JSON list of {"media": path from the list's folder, "question", "task": model name; none:
// the base model} and the files that it names. Other keys are ignored, and so are entries that
// repeat a file, a task and a question. Errors: kInvalidArgument with the file and the entry, if an
// entry is incomplete, a file is not a picture or clip that browsers show, or there are too many
// bytes; or those of read_file().
Result<std::vector<Sample>> read_samples(const std::string& path);

}  // namespace valora::server
