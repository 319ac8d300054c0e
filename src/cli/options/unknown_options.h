// Reports what the command line parser did not know.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace valora::cli {

// One line per unknown argument, in the order given, with the nearest option of the given command
// if there is one. Call after parsing has thrown CLI::ExtrasError.
std::vector<std::string> describe_unknown(const CLI::App& app);

}  // namespace valora::cli
