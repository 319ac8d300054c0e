#include "base/machine/core_sets.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/machine/cores.h"

namespace valora {
namespace {

constexpr int kMostCores = 1 << 16;

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  for (size_t at = text.find(by); at != text.npos; at = text.find(by)) {
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + 1);
  }
  parts.push_back(text);
  return parts;
}

Result<int> core_number(std::string_view text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0 ||
      number >= kMostCores)
    return invalid("\"" + std::string(text) + "\" is not a CPU number");
  return number;
}

// "node12": 12; -1 for other names.
int node_number(const std::string& name) {
  constexpr std::string_view kNode = "node";
  if (!name.starts_with(kNode)) return -1;
  const auto number = core_number(std::string_view(name).substr(kNode.size()));
  return number.ok() ? *number : -1;
}

}  // namespace

Result<CoreSet> parse_cores(std::string_view text) {
  CoreSet cores;
  for (const std::string_view part : split(text, ',')) {
    const size_t dash = part.find('-');
    VALORA_TRY(first, core_number(part.substr(0, dash)));
    int last = first;
    if (dash != part.npos) {
      VALORA_TRY(named, core_number(part.substr(dash + 1)));
      last = named;
    }
    if (last < first) return invalid("\"" + std::string(part) + "\" ends before it begins");
    for (int core = first; core <= last; ++core) cores.push_back(core);
  }
  std::ranges::sort(cores);
  if (std::ranges::adjacent_find(cores) != cores.end())
    return invalid("\"" + std::string(text) + "\" names a CPU twice");
  return cores;
}

Result<std::vector<CoreSet>> parse_core_sets(std::string_view text) {
  std::vector<CoreSet> sets;
  CoreSet all;
  for (const std::string_view part : split(text, '|')) {
    VALORA_TRY(cores, parse_cores(part));
    all.insert(all.end(), cores.begin(), cores.end());
    sets.push_back(std::move(cores));
  }
  std::ranges::sort(all);
  if (const auto twice = std::ranges::adjacent_find(all); twice != all.end())
    return invalid("CPU " + std::to_string(*twice) + " is in two sets");
  return sets;
}

std::string to_text(const CoreSet& cores) {
  std::string text;
  for (size_t i = 0; i < cores.size(); ++i) {
    const int first = cores[i];
    while (i + 1 < cores.size() && cores[i + 1] == cores[i] + 1) ++i;
    if (!text.empty()) text += ',';
    text += std::to_string(first);
    if (cores[i] != first) text += '-' + std::to_string(cores[i]);
  }
  return text;
}

std::vector<CoreSet> numa_nodes(const std::string& files) {
  std::vector<std::pair<int, CoreSet>> nodes;
  const std::vector<int> usable = cpus_of_affinity();
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(files, none)) {
    const int number = node_number(entry.path().filename().string());
    if (number < 0) continue;
    std::ifstream file(entry.path() / "cpulist");
    std::string line;
    std::getline(file, line);
    const auto cores = parse_cores(line);
    if (!cores.ok()) continue;  // a NUMA node without CPUs
    CoreSet of_process;
    std::ranges::set_intersection(*cores, usable, std::back_inserter(of_process));
    if (!of_process.empty()) nodes.emplace_back(number, std::move(of_process));
  }
  std::ranges::sort(nodes);
  std::vector<CoreSet> sets;
  for (auto& [number, cores] : nodes) sets.push_back(std::move(cores));
  return sets;
}

bool bind_thread(const CoreSet& cores) {
  const int most = cores.empty() ? 0 : cores.back() + 1;
  cpu_set_t* const set = CPU_ALLOC(static_cast<size_t>(most));
  if (!set) return false;
  const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(most));
  CPU_ZERO_S(bytes, set);
  for (const int core : cores) CPU_SET_S(static_cast<size_t>(core), bytes, set);
  const bool bound = ::sched_setaffinity(0, bytes, set) == 0;
  CPU_FREE(set);
  return bound;
}

void run_bound(const CoreSet& cores, const std::function<void()>& body) {
  if (cores.empty()) return body();
  std::exception_ptr failure;
  std::thread([&] {
    bind_thread(cores);
    try {
      body();
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace valora
