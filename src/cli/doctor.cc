// `valora doctor`: what a report of a fault needs: program, machine, limits, libraries, and a short
// measurement of speed.
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "base/machine/control_groups.h"
#include "base/machine/core_sets.h"
#include "base/machine/cores.h"
#include "base/text/human_bytes.h"
#include "cli/build_info.h"
#include "cli/command.h"
#include "cli/progress/format.h"
#include "engine/memory/memory_plan.h"
#include "engine/start/find_device.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/tiles/hardware.h"
#include "media/library_versions.h"
#include "tuning/machine_speed.h"

extern char**
    environ;  // NOLINT(readability-redundant-declaration): <unistd.h> has it for GNU alone

namespace valora::cli {
namespace {

struct DoctorFlags {
  double seconds = 5;
  bool json = false;
};

// PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
std::string distribution() {
  constexpr std::string_view kKey = "PRETTY_NAME=";
  std::ifstream file("/etc/os-release");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(kKey)) continue;
    std::string name = line.substr(kKey.size());
    if (name.size() >= 2 && name.front() == '"') name = name.substr(1, name.size() - 2);
    return name;
  }
  return "unknown";
}

Json system_json() {
  utsname kernel{};
  uname(&kernel);
  return {{"distribution", distribution()},
          {"kernel", kernel.release},
          {"glibc", gnu_get_libc_version()}};
}

Json cpu_json() {
  const kernels::Hardware& hardware = kernels::this_hardware();
  Json supported = Json::array();
  for (const kernels::Isa isa : kernels::supported_isas()) supported.push_back(isa_name(isa));
  Json quota;
  if (const auto found = cpu_quota()) quota = {{"cpus", found->cpus}, {"file", found->file}};
  Json nodes = Json::array();
  for (const CoreSet& node : numa_nodes()) nodes.push_back(to_text(node));
  return {{"model", hardware.text()},
          {"instruction_set", isa_name(kernels::isa())},
          {"instruction_sets", supported},
          {"cpus", cpus_of_affinity().size()},
          {"cores", cores_of_affinity()},
          {"usable_cores", usable_cores()},
          {"quota", quota},
          {"numa_nodes", nodes}};
}

Json memory_json() {
  const HostMemory memory = host_memory();
  Json limit;
  if (const auto found = memory_limit())
    limit = {{"bytes", found->bytes}, {"left", found->left}, {"file", found->file}};
  return {{"available", memory.available}, {"limit", limit}};
}

Json gpu_json() {
  const auto device = find_device(DeviceKind::kCuda);
  if (!device.ok()) return {{"usable", false}, {"reason", device.error().message}};
  return {{"usable", true}, {"model", hardware_of(*device).text()}};
}

Json libraries_json() {
  Json versions = {{"torch", torch_version()}};
  for (const auto& [name, version] : media::library_versions()) versions[name] = version;
  return versions;
}

// Variables that change how the program computes. Not VALORA_API_KEY, a secret.
Json environment_json() {
  Json out = Json::object();
  for (char** at = environ; *at; ++at) {
    const std::string_view entry = *at;
    const std::string_view name = entry.substr(0, entry.find('='));
    const bool shown = name.starts_with("OMP_") || name.starts_with("GOMP_") ||
                       name.starts_with("MKL_") || name.starts_with("CUDA_") ||
                       name == "VALORA_ISA" || name == "LD_PRELOAD" || name == "MALLOC_CONF";
    if (shown) out[std::string(name)] = entry.substr(std::min(entry.size(), name.size() + 1));
  }
  return out;
}

Json speed_json(double seconds) {
  if (seconds == 0) return {};
  const tuning::MachineSpeed speed = tuning::measure_speed(seconds);
  return {{"threads", speed.threads},
          {"dtype", speed.dtype},
          {"memory_bytes_per_second", speed.bandwidth},
          {"token_bytes_per_second", speed.token_bandwidth},
          {"prompt_operations_per_second", speed.prompt_rate}};
}

Json report(const DoctorFlags& flags) {
  return {{"version", VALORA_VERSION},         {"commit", kCommit},
          {"system", system_json()},           {"cpu", cpu_json()},
          {"memory", memory_json()},           {"gpu", gpu_json()},
          {"libraries", libraries_json()},     {"environment", environment_json()},
          {"speed", speed_json(flags.seconds)}};
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string joined(const Json& list) {
  std::string text;
  for (const Json& entry : list) text += (text.empty() ? "" : ", ") + text_of(entry);
  return text;
}

std::string cpu_text(const Json& cpu) {
  std::string text = fmt::format(
      "  cpu          {}\n  instructions {}, of {}\n  cores        {} usable, of {} ({} CPUs, NUMA "
      "nodes: {})\n",
      text_of(cpu["model"]), text_of(cpu["instruction_set"]), joined(cpu["instruction_sets"]),
      cpu["usable_cores"].get<int>(), cpu["cores"].get<int>(), cpu["cpus"].get<int>(),
      joined(cpu["numa_nodes"]));
  const Json& quota = cpu["quota"];
  text += quota.is_null() ? "  CPU quota    none\n"
                          : fmt::format("  CPU quota    {} CPUs, by {}\n",
                                        quota["cpus"].get<double>(), text_of(quota["file"]));
  return text;
}

std::string memory_text(const Json& memory) {
  const Json& limit = memory["limit"];
  return fmt::format(
      "  memory       {} available; {}\n", human_bytes(memory["available"].get<size_t>()),
      limit.is_null()
          ? std::string("no limit")
          : fmt::format("limit {}, {} left, by {}", human_bytes(limit["bytes"].get<size_t>()),
                        human_bytes(limit["left"].get<size_t>()), text_of(limit["file"])));
}

std::string speed_text(const Json& speed) {
  if (speed.is_null()) return {};
  const double memory = speed["memory_bytes_per_second"].get<double>();
  const double token = speed["token_bytes_per_second"].get<double>();
  return fmt::format(
      "  speed        memory is read at {:.1f} GB/s, a token's weights ({}) at {:.1f} GB/s, {:.0f} "
      "% of it; prompts {:.0f} GFLOP/s; {} threads\n",
      memory / 1e9, text_of(speed["dtype"]), token / 1e9, 100 * token / memory,
      speed["prompt_operations_per_second"].get<double>() / 1e9, speed["threads"].get<int>());
}

std::string pairs_text(const Json& object) {
  std::string text;
  for (const auto& [name, value] : object.items())
    text += (text.empty() ? "" : ", ") + name + " " + text_of(value);
  return text.empty() ? "none" : text;
}

std::string report_text(const Json& r) {
  const Json& gpu = r["gpu"];
  return fmt::format("valora {}, commit {}\n  system       {}\n", text_of(r["version"]),
                     text_of(r["commit"]), pairs_text(r["system"])) +
         cpu_text(r["cpu"]) + memory_text(r["memory"]) +
         fmt::format(
             "  GPU          {}\n  libraries    {}\n  environment  {}\n",
             gpu["usable"].get<bool>() ? text_of(gpu["model"]) : "none: " + text_of(gpu["reason"]),
             pairs_text(r["libraries"]), pairs_text(r["environment"])) +
         speed_text(r["speed"]);
}

int run_doctor(const DoctorFlags& flags) {
  if (const Status s = kernels::select_isa(); !s.ok()) return fail(s.error());
  const Json found = report(flags);
  if (flags.json)
    print_json(found);
  else
    fmt::print("{}", report_text(found));
  return 0;
}

}  // namespace

void add_doctor(Command app, std::function<int()>& run) {
  auto flags = std::make_shared<DoctorFlags>();
  Command c = app.add_subcommand(
      "doctor", "Print what a report of a fault needs: program, machine, limits, libraries, speed");
  c.add_option("--seconds", flags->seconds, "Time of the measurement of speed; 0: none")
      .range(0, 600)
      .capture_default_str();
  c.add_flag("--json", flags->json, "Print one JSON object");
  c.callback([flags, &run] { run = [flags] { return run_doctor(*flags); }; });
}

}  // namespace valora::cli
