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
};  // hardest: whose base accuracy is furthest below its floor
enum class FusionPacking {
  kLast,
  kFirstFit
};  // which open adapters a task is tried in: the last one alone, or all

struct FusionOptions {
  std::string output;    // folder of adapters, manifest, report, and of what a resumed run needs
  EngineOptions engine;  // the model, for training and for evaluation
  TrainingOptions training;  // of one attempt
  std::vector<int64_t> ranks{
      16};  // tried one after the other before a task gets an adapter of its own
  double alpha_per_rank = 2;
  std::vector<TargetPart> targets{TargetPart::kDecoder};
  // Share of each step that samples of the adapter's earlier tasks take; 0: the paper's literal
  // sequence, which forgets.
  double replay = 0.5;
  FusionOrder order = FusionOrder::kGiven;
  FusionPacking packing = FusionPacking::kLast;
  bool alone = false;              // trains an adapter for each task alone as well, to compare with
  bool language_with_head = true;  // tasks that have a head train the language model's answer, too
  std::optional<int64_t> validation_limit;  // samples of a task
  bool bfloat16 = true;                     // dtype of the adapters' files
  uint64_t seed = 0;
};

Result<FusionOrder> parse_order(const std::string& name);      // given, random, hardest
Result<FusionPacking> parse_packing(const std::string& name);  // last, first-fit
Json to_json(const FusionOptions& options);                    // what results depend on
Json attempt_json(
    const FusionOptions& options);  // what an attempt's result depends on: not which are made

}  // namespace valora::generator
