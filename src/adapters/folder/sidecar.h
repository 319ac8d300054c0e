// valora.json in an adapter's folder: settings missing from PEFT's files (task, labels, how a head
// was trained).
#pragma once

#include <string>
#include <vector>

#include "adapters/adapter_spec.h"
#include "base/files/input_folder.h"
#include "base/result.h"

namespace valora::adapters {

struct HeadNotes {
  std::string name;
  std::vector<std::string> labels;          // empty: not given
  std::optional<ProblemType> problem_type;  // nullopt: not given
  bool add_generation_prompt = false;
  std::string question;  // used in training; may be empty
};

struct Sidecar {
  std::string task, description, question;
  std::vector<HeadNotes> heads;
  std::vector<std::string> warnings;  // unknown keys
};

// A missing file yields an empty sidecar. Errors: kInvalidArgument for broken JSON and wrong types;
// kUnprocessable for an unsupported pooling or problem type.
Result<Sidecar> read_sidecar(const InputFolder& folder);

}  // namespace valora::adapters
