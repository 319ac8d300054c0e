// How tasks are fused into adapters (VaLoRA §4.2.1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/options.h"
#include "base/json.h"
#include "base/result.h"
#include "generator/train/adapter_shape.h"
#include "generator/train/options.h"

namespace valora::generator {

enum class FusionOrder {
  kGiven,
  kRandom,
  kHardestFirst
};  // hardest: base accuracy furthest below its floor
enum class FusionPacking {
  kLast,
  kFirstFit
};  // the open adapters that a task is tried in: only the last one, or all

struct FusionOptions {
  std::string output;        // the folder of adapters, manifest, report and resumable state
  EngineOptions engine;      // the model, for training and for evaluation
  TrainingOptions training;  // per attempt
  std::vector<int64_t> ranks{// Tried in this order before a task gets an adapter of its own.
                             16};
  double alpha_per_rank = 2;
  std::vector<TargetPart> targets{TargetPart::kDecoder};
  // The share of each step's samples from the adapter's earlier tasks. 0: the paper's literal
  // sequence, which forgets earlier tasks.
  double replay = 0.5;
  FusionOrder order = FusionOrder::kGiven;
  FusionPacking packing = FusionPacking::kLast;
  bool alone = false;              // also trains one adapter per task, for comparison
  bool language_with_head = true;  // also trains the language model's answer for tasks with a head
  std::optional<int64_t> validation_limit;  // samples per task
  bool bfloat16 = true;                     // dtype of the adapters' files
  uint64_t seed = 0;
  bool restart = false;  // forgets the attempts of earlier runs
  bool replace = false;  // may drop tasks of the output's manifest that this run leaves out
};

// kInvalidArgument names the option: numbers with which no training could succeed.
Status check(const FusionOptions& options);
Result<FusionOrder> parse_order(const std::string& name);      // given, random, hardest
Result<FusionPacking> parse_packing(const std::string& name);  // last, first-fit
Json to_json(const FusionOptions& options);                    // the options that results depend on
// The options that an attempt's result depends on.
Json attempt_json(const FusionOptions& options);

}  // namespace valora::generator
