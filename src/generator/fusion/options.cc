#include "generator/fusion/options.h"

#include <fmt/format.h>

#include <limits>

namespace valora::generator {
namespace {

const char* name_of(FusionOrder order) {
  switch (order) {
    case FusionOrder::kGiven: return "given";
    case FusionOrder::kRandom: return "random";
    case FusionOrder::kHardestFirst: return "hardest";
  }
  return "";
}

const char* name_of(FusionPacking packing) {
  return packing == FusionPacking::kLast ? "last" : "first-fit";
}

constexpr double kEndless = std::numeric_limits<double>::infinity();
// AdamW moves a value by about the learning rate in each step, whatever its gradient; adapter
// values are about 0.01.
constexpr double kHighestLearningRate = 0.5;

// Written so that NaN is rejected too.
Status check_range(const char* option, double value, double least, double below) {
  if (value >= least && value < below) return {};
  const std::string range = below == kEndless
                                ? fmt::format("a number of at least {}", least)
                                : fmt::format("a number of at least {} and below {}", least, below);
  return invalid(fmt::format("--{} takes {}, not {}", option, range, value), option);
}

Status check_least(const char* option, int64_t value, int64_t least) {
  if (value >= least) return {};
  return invalid(fmt::format("--{} must be at least {}", option, least), option);
}

Status check_rates(const TrainingOptions& o) {
  if (!(o.learning_rate > 0 && o.learning_rate <= kHighestLearningRate))
    return invalid(
        fmt::format("--learning-rate takes a number above 0 and at most {}, not {}; begin with "
                    "2e-4, or 1e-3 to 5e-3 for a model of a few million parameters",
                    kHighestLearningRate, o.learning_rate),
        "learning_rate");
  VALORA_CHECK(check_range("warmup", o.warmup, 0, 1));
  VALORA_CHECK(check_range("weight-decay", o.weight_decay, 0, 1));
  VALORA_CHECK(check_range("clip", o.clip, 0, kEndless));
  return check_range("dropout", o.dropout, 0, 1);
}

}  // namespace

Status check(const FusionOptions& o) {
  VALORA_CHECK(check_rates(o.training));
  VALORA_CHECK(check_range("replay", o.replay, 0, 1));
  if (!(o.alpha_per_rank > 0 && o.alpha_per_rank < kEndless))
    return invalid(fmt::format("--alpha-per-rank takes a number above 0, not {}", o.alpha_per_rank),
                   "alpha_per_rank");
  VALORA_CHECK(check_least("steps", o.training.steps, 1));
  VALORA_CHECK(check_least("batch", o.training.batch, 1));
  VALORA_CHECK(check_least("tokens-per-pass", o.training.tokens_per_pass, 1));
  VALORA_CHECK(check_least("evaluate-every", o.training.evaluate_every, 0));
  VALORA_CHECK(check_least("patience", o.training.patience, 1));
  VALORA_CHECK(check_least("checkpoint-every", o.training.checkpoint_every, 0));
  VALORA_CHECK(check_least("validation-limit", o.validation_limit.value_or(1), 1));
  if (o.ranks.empty()) return invalid("--rank needs a rank", "rank");
  for (size_t i = 0; i < o.ranks.size(); ++i)
    if (o.ranks[i] < 1 || o.ranks[i] > 256 || (i > 0 && o.ranks[i] <= o.ranks[i - 1]))
      return invalid("--rank takes ascending ranks from 1 to 256", "rank");
  return {};
}

Result<FusionOrder> parse_order(const std::string& name) {
  for (const FusionOrder order :
       {FusionOrder::kGiven, FusionOrder::kRandom, FusionOrder::kHardestFirst})
    if (name == name_of(order)) return order;
  return invalid("--order takes given, random or hardest, not \"" + name + "\"", "order");
}

Result<FusionPacking> parse_packing(const std::string& name) {
  for (const FusionPacking packing : {FusionPacking::kLast, FusionPacking::kFirstFit})
    if (name == name_of(packing)) return packing;
  return invalid("--packing takes last or first-fit, not \"" + name + "\"", "packing");
}

Json to_json(const FusionOptions& o) {
  Json targets = Json::array();
  for (const TargetPart part : o.targets) targets.push_back(target_part_name(part));
  return {{"model", o.engine.model_path},
          {"dtype", name_of(o.engine.dtype)},
          {"quantization", name_of(o.engine.quantization)},
          {"training", to_json(o.training)},
          {"ranks", o.ranks},
          {"alpha_per_rank", o.alpha_per_rank},
          {"targets", targets},
          {"replay", o.replay},
          {"order", name_of(o.order)},
          {"packing", name_of(o.packing)},
          {"alone", o.alone},
          {"language_with_head", o.language_with_head},
          {"validation_limit", o.validation_limit ? Json(*o.validation_limit) : Json()},
          {"bfloat16", o.bfloat16},
          {"seed", o.seed}};
}

Json attempt_json(const FusionOptions& options) {
  Json json = to_json(options);
  for (const char* key : {"ranks", "order", "packing", "alone", "bfloat16"}) json.erase(key);
  return json;
}

}  // namespace valora::generator
