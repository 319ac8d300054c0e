#include "lab/cli/experiment_flags.h"

namespace valora::cli {
namespace {

// Adds numeric options under a heading of --help.
auto numbers_in(Command command, const std::string& group) {
  return [command, group](const char* name, double& value, const char* help) mutable {
    command.add_option(name, value, help).capture_default_str().group(group);
  };
}

void add_merging(Command command, scheduler::PolicyOptions& policy) {
  auto number = numbers_in(command, "Scheduling experiments");
  number("--merged-share", policy.merged_share,
         "Share of a full batch that must use an adapter before valora merges it");
  number("--merged-gain", policy.merged_gain,
         "By how much more tokens per second merged mode must yield than serving all requests");
  number("--starving-share", policy.starving_share,
         "Share of a full batch; while more starve, a merge must save four times its cost");
}

void add_pool(Command command, bench::Experiments& e) {
  const std::string group = "Memory experiments";
  auto number = numbers_in(command, group);
  number("--swap-bandwidth", e.copy_bandwidth,
         "Highest bytes per second of copies to the pool and from it; 0: no limit");
  command
      .add_option("--memory-policy", e.values,
                  "What leaves the pool first: learned (what saves the least time, by measured "
                  "rates of use), benefit (by FastLibra's value), or lru (the least recently used)")
      .one_of({"learned", "benefit", "lru"})
      .capture_default_str()
      .group(group);
  command
      .add_flag("!--no-dependencies", e.dependencies,
                "Adapters may leave the pool before their KV, as they may with learned")
      .group(group);
  command
      .add_flag("!--no-adapter-reward", e.benefit.adapter_reward,
                "With benefit: value adapters without regard to how many the requests use")
      .group(group);
  command
      .add_flag("!--no-history", e.history,
                "Keep neither KV nor adapters in the pool after their last request")
      .group(group);
  command
      .add_option("--adapter-memory", e.adapter_bytes,
                  "Bytes of the pool for adapters alone; the rest is for KV alone")
      .human_integer()
      .group(group);
  number("--pool-high", e.high, "Share of the pool above which blocks leave it ahead of need");
  number("--pool-low", e.low, "Share of the pool below which blocks come in ahead of need");
  number("--swap-period", e.period, "Seconds between decisions about memory");
  number("--visit-window", e.window,
         "Seconds in which visits are counted; older ones weigh little in learned rates");
  number("--recency", e.benefit.recency_seconds,
         "With benefit: seconds in which the value of a recent use fades");
}

}  // namespace

void add_experiment_flags(Command command, bench::Experiments& experiments) {
  add_merging(command, experiments.policy);
  add_pool(command, experiments);
}

}  // namespace valora::cli
