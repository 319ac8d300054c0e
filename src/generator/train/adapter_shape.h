// The structure of an adapter in training: low-rank products on some of a model's linears, and task
// heads.
#pragma once

#include <string>
#include <vector>

#include "adapters/targets/module_table.h"
#include "base/json/json.h"
#include "base/result.h"

namespace valora::generator {

struct HeadShape {
  std::string name;  // "score"
  std::vector<std::string> labels;
  bool multi_label = false;
};

struct AdapterShape {
  int64_t rank = 16;
  double alpha = 32;             // products are scaled by alpha / rank
  std::vector<int> modules;      // indices in the model's module table, ascending
  std::vector<HeadShape> heads;  // ascending by name
  // Activated LoRA: the adapter acts from the last occurrence of these tokens in a prompt on, so
  // the KV before it is the base model's. Empty: it acts on all tokens.
  std::vector<int32_t> invocation = {};
  double scale() const { return alpha / static_cast<double>(rank); }
};

enum class TargetPart { kDecoder, kProjector, kTower };

// Module indices of the servable linears of these parts, ascending. kInvalidArgument if the model
// lacks a part.
Result<std::vector<int>> target_modules(const adapters::ModuleTable& modules,
                                        const std::vector<TargetPart>& parts);
// "decoder", "projector", "vision"
const char* target_part_name(TargetPart part);
Result<TargetPart> parse_target_part(const std::string& name);

Json to_json(const AdapterShape& shape);
Result<AdapterShape> shape_from_json(const Json& json, const std::string& what);

}  // namespace valora::generator
