#include "generator/fusion/options.h"

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

}  // namespace

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
