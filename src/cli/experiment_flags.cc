// Options that exchange parts of the pool and of the policies, for comparisons. No server needs
// them.
#include "cli/command.h"
#include "cli/named_option.h"

namespace valora::cli {
namespace {

// Adds numeric options under a heading of --help.
auto numbers_in(Command command, const std::string& group) {
  return [command, group](const char* name, double& value, const char* help) mutable {
    command.add_option(name, value, help).capture_default_str().group(group);
  };
}

void add_merging(Command command, SchedulingOptions& s) {
  auto number = numbers_in(command, "Scheduling experiments");
  number("--merged-share", s.merged_share,
         "Share of a full batch that must use an adapter before valora merges it");
  number("--merged-gain", s.merged_gain,
         "By how much more tokens per second merged mode must yield than serving all requests");
  number("--starving-share", s.starving_share,
         "Share of a full batch; while more starve, a merge must save four times its cost");
}

void add_pool(Command command, MemoryOptions& m) {
  const std::string group = "Memory experiments";
  auto number = numbers_in(command, group);
  command
      .add_option("--swap-bandwidth", m.swap_bandwidth,
                  "Highest bytes per second of copies to the pool and from it; 0: no limit")
      .capture_default_str()
      .group(group);
  add_named_option(
      command, "--memory-policy", m.policy, parse_memory_policy,
      "What leaves the pool first: learned (what saves the least time, by measured "
      "rates of use), benefit (by FastLibra's value), or lru (the least recently used)")
      .group(group);
  command
      .add_flag("!--no-dependencies", m.dependencies,
                "Adapters may leave the pool before their KV, as they may with learned")
      .group(group);
  command
      .add_flag("!--no-adapter-reward", m.adapter_reward,
                "With benefit: value adapters without regard to how many the requests use")
      .group(group);
  command
      .add_flag("!--no-history", m.history,
                "Keep neither KV nor adapters in the pool after their last request")
      .group(group);
  command
      .add_option("--adapter-memory", m.adapter_bytes,
                  "Bytes of the pool for adapters alone; the rest is for KV alone")
      .human_integer()
      .group(group);
  number("--pool-high", m.high, "Share of the pool above which blocks leave it ahead of need");
  number("--pool-low", m.low, "Share of the pool below which blocks come in ahead of need");
  number("--swap-period", m.period, "Seconds between decisions about memory");
  number("--visit-window", m.window,
         "Seconds in which visits are counted; older ones weigh little in learned rates");
  number("--recency", m.recency, "With benefit: seconds in which the value of a recent use fades");
}

}  // namespace

void add_experiment_flags(Command command, EngineOptions& options) {
  add_merging(command, options.scheduling);
  add_pool(command, options.memory);
}

}  // namespace valora::cli
