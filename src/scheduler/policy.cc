#include "scheduler/policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string_view>

namespace valora::scheduler {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<Policy> (*make)();
};

constexpr std::array kPolicies = {Entry{"unmerged", make_unmerged_policy},
                                  Entry{"merged", make_merged_policy},
                                  Entry{"mixture", make_mixture_policy}};

}  // namespace

const char* mode_name(Mode mode) {
  switch (mode) {
    case Mode::kMerged: return "merged";
    case Mode::kMixture: return "mixture";
    case Mode::kUnmerged: break;
  }
  return "unmerged";
}

Result<std::unique_ptr<Policy>> make_policy(const std::string& name) {
  std::vector<std::string_view> known;
  for (const Entry& entry : kPolicies) {
    if (entry.name == name) return entry.make();
    known.push_back(entry.name);
  }
  return invalid(fmt::format("unknown scheduling policy '{}'; known policies: {}", name,
                             fmt::join(known, ", ")),
                 "scheduling-policy");
}

}  // namespace valora::scheduler
