// Sets of CPUs to which threads are bound.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace valora {

using CoreSet = std::vector<int>;  // CPU numbers, ascending

// Parses "0-3,8", the format of Linux's cpulist files. kInvalidArgument for malformed text or a
// number above 65535.
Result<CoreSet> parse_cores(std::string_view text);
// Parses "0-3|4-7"; the sets must be disjoint.
Result<std::vector<CoreSet>> parse_core_sets(std::string_view text);
std::string to_text(const CoreSet& cores);

// For each NUMA node, in the order of node numbers: its CPUs that this process may use. Skips nodes
// without such CPUs; empty if the files are missing.
std::vector<CoreSet> numa_nodes(const std::string& files = "/sys/devices/system/node");

// Binds the calling thread, and threads it starts from now on. False if the kernel refused.
bool bind_thread(const CoreSet& cores);
// Runs the body on a new thread bound to these cores, so that memory first written by that thread,
// or by threads it starts, is local to them. Runs it on the calling thread if `cores` is empty.
// Rethrows what the body throws.
void run_bound(const CoreSet& cores, const std::function<void()>& body);

}  // namespace valora
