// Writes a trained adapter as a PEFT folder that transformers + PEFT and `valora serve` load
// unchanged.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "generator/train/adapter_parameters.h"

namespace valora::generator {

struct AdapterNotes {
  std::string base_model;                   // base_model_name_or_path
  std::string task, description;            // for valora.json
  std::string question;                     // used in training, if there was only one
  std::vector<std::string> head_questions;  // per head, in the shape's order
  double dropout = 0;
  bool bfloat16 = false;  // dtype of the low-rank tensors in the file; heads stay fp32
};

// Writes adapter_config.json, adapter_model.safetensors and valora.json. The folder appears
// atomically.
Status write_adapter(const std::string& dir, const AdapterParameters& parameters,
                     const adapters::ModuleTable& modules, const AdapterNotes& notes);

}  // namespace valora::generator
