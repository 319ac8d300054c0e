#include "cli/command.h"

namespace valora::cli {
void add_inspect(CLI::App&, std::function<int()>&) {}
}  // namespace valora::cli
