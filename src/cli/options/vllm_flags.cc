#include "cli/options/vllm_flags.h"

#include <stdexcept>

namespace valora::cli {
namespace {

constexpr const char* kGroup = "Accepted for vLLM's command lines";

void add_flag(Command command, const char* name, const char* note,
              std::vector<std::string>& notes) {
  command
      .add_flag_callback(
          name, [&notes, name, note] { notes.push_back(std::string(name) + ": " + note); }, note)
      .group(kGroup);
}

template <typename T>
void add_value(Command command, const char* name, const char* note,
               std::vector<std::string>& notes) {
  command
      .add_option_function<T>(
          name,
          [&notes, name, note](const T&) { notes.push_back(std::string(name) + ": " + note); },
          note)
      .group(kGroup);
}

}  // namespace

void add_vllm_flags(Command command, std::vector<std::string>& notes) {
  add_flag(command, "--enable-lora", "adapters are always enabled", notes);
  add_value<int>(command, "--max-loras",
                 "a batch takes any number of adapters; --max-cpu-loras limits the loaded ones",
                 notes);
  add_flag(command, "--enable-auto-tool-choice", "calls of tools are always read", notes);
  add_flag(command, "--enforce-eager", "no graphs are captured anyway", notes);
  add_value<double>(command, "--gpu-memory-utilization",
                    "has no effect; --kv-cache-memory sets the bytes of the KV cache", notes);
  add_flag(command, "--trust-remote-code", "no code of a model's folder is run", notes);
  add_flag(command, "--enable-prefix-caching", "on unless --no-enable-prefix-caching is given",
           notes);
  add_flag(command, "--enable-server-load-tracking", "/load always counts", notes);
  add_flag(command, "--enable-ssl-refresh", "certificates are always read again if they change",
           notes);
  const char* parallel = "only 1 is served: one device runs the whole model";
  command
      .add_option_function<int>(
          "--tensor-parallel-size,-t",
          [&notes, parallel](int size) {
            if (size != 1)
              throw std::invalid_argument("--tensor-parallel-size " + std::to_string(size) + ": " +
                                          parallel);
            notes.push_back(std::string("--tensor-parallel-size: ") + parallel);
          },
          parallel)
      .group(kGroup);
}

}  // namespace valora::cli
