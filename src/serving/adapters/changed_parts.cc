#include "serving/adapters/changed_parts.h"

#include <algorithm>
#include <set>

namespace valora::serving {
namespace {

class Part {
 public:
  Part(const char* name, bool visual) : name_(name), visual_(visual) {}

  void add_target(const adapters::LoraTarget& target) {
    linears_.insert(target.module);
    ranks_.insert(target.rank);
    scales_.insert(target.scale);
  }
  void add_linear(int module) { linears_.insert(module); }
  bool holds(const adapters::Module& module) const {
    return module.kind == adapters::ModuleKind::kLinear && module.visual == visual_;
  }
  bool changed() const { return !linears_.empty(); }
  ChangedPart counted(const adapters::ModuleTable& modules) const {
    const auto of = std::ranges::count_if(
        modules.modules(), [this](const adapters::Module& module) { return holds(module); });
    return {name_,
            static_cast<int>(linears_.size()),
            static_cast<int>(of),
            {ranks_.begin(), ranks_.end()},
            {scales_.begin(), scales_.end()}};
  }

 private:
  const char* name_;
  bool visual_;
  std::set<int> linears_, ranks_;
  std::set<float> scales_;
};

}  // namespace

std::vector<ChangedPart> changed_parts(const adapters::AdapterSpec& spec,
                                       const adapters::ModuleTable& modules) {
  Part parts[] = {{"decoder", false}, {"vision", true}};
  std::vector<ChangedPart> changed;
  for (Part& part : parts) {
    const auto holds = [&](int module) { return part.holds(modules.modules()[module]); };
    for (const adapters::LoraTarget& target : spec.targets)
      if (holds(target.module)) part.add_target(target);
    for (const auto& values : {&spec.shifts, &spec.gains})
      for (const adapters::OutputValues& value : *values)
        if (holds(value.module)) part.add_linear(value.module);
    if (part.changed()) changed.push_back(part.counted(modules));
  }
  return changed;
}

}  // namespace valora::serving
