// How tasks are fused into adapters (VaLoRA §4.2.1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/options.h"
#include "base/json/json.h"
#include "base/result.h"
#include "generator/train/adapter_shape.h"
#include "generator/train/options.h"

namespace valora::generator {

enum class FusionOrder {
  kGiven,
  kRandom,
  kHardestFirst
};  // hardest: tasks whose base accuracy is furthest below the floor come first
enum class FusionPacking {
  kLast,
  kFirstFit
};  // the open adapters in which a task is tried: only the last one, or all

struct FusionOptions {
  std::string output;        // folder of adapters, manifest, report and resumable state
  EngineOptions engine;      // the model, for training and evaluation
  TrainingOptions training;  // per attempt
  std::vector<int64_t> ranks{// Tried in this order before a task gets its own adapter.
                             16};
  double alpha_per_rank = 2;
  std::vector<TargetPart> targets{TargetPart::kDecoder};
  // Share of each step's samples that come from the adapter's earlier tasks. 0: the paper's literal
  // sequence, which forgets earlier tasks.
  double replay = 0.5;
  FusionOrder order = FusionOrder::kGiven;
  FusionPacking packing = FusionPacking::kLast;
  bool activated = false;                   // Task::activation of tasks that do not set it
  bool alone = false;                       // also trains one adapter per task, for comparison
  bool language_with_head = true;           // also trains the language model on tasks with a head
  std::optional<int64_t> validation_limit;  // samples per task
  bool bfloat16 = true;                     // dtype of the adapters' files
  uint64_t seed = 0;
  bool restart = false;  // discards the attempts of earlier runs
  bool replace = false;  // may drop tasks of the existing manifest
};

// kInvalidArgument, naming the option, for numbers that make training impossible.
Status check(const FusionOptions& options);
Result<FusionOrder> parse_order(const std::string& name);      // given, random, hardest
Result<FusionPacking> parse_packing(const std::string& name);  // last, first-fit
Json to_json(const FusionOptions& options);                    // the options that affect results
// The options that affect an attempt's result.
Json attempt_json(const FusionOptions& options);

}  // namespace valora::generator
