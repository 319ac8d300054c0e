// Sets of CPUs that threads are bound to.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace valora {

using CoreSet = std::vector<int>;  // numbers of CPUs, ascending

// "0-3,8", as in Linux's files. kInvalidArgument: another text, or a number above 65535.
Result<CoreSet> parse_cores(std::string_view text);
// "0-3|4-7": sets apart from one another.
Result<std::vector<CoreSet>> parse_core_sets(std::string_view text);
std::string to_text(const CoreSet& cores);

// The CPUs that this process may use of each NUMA node that has some, by the node's number; empty
// if the files do not say.
std::vector<CoreSet> numa_nodes(const std::string& files = "/sys/devices/system/node");

// Binds the calling thread, and the threads that it makes from now on. False: the kernel refused.
bool bind_thread(const CoreSet& cores);
// Runs the body on a thread of its own that is bound to these cores, so that the memory that it and
// the threads it makes first write to is near them. Without cores: on the calling thread. Throws
// what the body throws.
void run_bound(const CoreSet& cores, const std::function<void()>& body);

}  // namespace valora
