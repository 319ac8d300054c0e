// Options from a YAML file, in the form of vLLM's --config: `port: 8000`.
#pragma once

#include <CLI/CLI.hpp>

#include <istream>
#include <string>
#include <vector>

namespace valora::cli {

// Reads the options of the program and of the command given. The command line takes precedence over
// the file. Errors are thrown as std::invalid_argument and name file, line and key.
class ConfigFile : public CLI::Config {
 public:
  explicit ConfigFile(const CLI::App& program) : program_(program) {}
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;
  // CLI11 also requires a way to write files, which is not used here.
  std::string to_config(const CLI::App*, bool, bool, std::string) const override { return {}; }

 private:
  const CLI::App& program_;
};

// True if the option takes no value.
bool is_flag(const CLI::Option& option);

// "--name" of each option of the program and of the given commands.
std::vector<std::string> option_names(const CLI::App& program);

}  // namespace valora::cli
