// Matches a regular expression from an adapter's configuration against module names.
#include "adapters/targets/regex.h"
#include "adapters/targets/target_rules.h"
#include "check.h"
#include "input.h"

using namespace valora;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const std::string pattern(input.part());
  adapters::RegexBudget budget{.long_matches = 10};
  const auto regex = adapters::Regex::compile(pattern, "fuzz");
  const auto key = adapters::NamePattern::compile(pattern, "fuzz");
  while (!input.empty()) {
    const std::string_view name = input.part();
    if (key.ok()) (void)key->matches(name, budget);
    if (!regex.ok()) continue;
    const auto full = regex->full_match(name, budget);
    const auto groups = regex->match(name, budget);
    // Each of the two matches may exceed its step budget.
    if (full.ok() && *full) FUZZ_CHECK(!groups.ok() || *groups);
    if (!groups.ok() || !*groups) continue;
    FUZZ_CHECK(!(*groups)->empty());
    for (const std::string& group : **groups) FUZZ_CHECK(group.size() <= name.size());
  }
  FUZZ_CHECK(budget.long_matches >= 0);
  return 0;
}
