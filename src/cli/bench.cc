#include "cli/command.h"

#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cli/progress/format.h"

namespace valora::cli {
namespace {

constexpr const char* kProgram = "valora-bench";

// The index of `bench`, which only the program's own options may precede; 0: another command.
int bench_index(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "bench") return i;
    if (!argument.starts_with("-")) return 0;
    if (argument == "--log-level" || argument == "--config") ++i;  // its value
  }
  return 0;
}

std::string neighbour() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string() : (self.parent_path() / kProgram).string();
}

}  // namespace

void add_bench(Command app) {
  app.add_subcommand("bench", "Measure, with the program valora-bench, which is built apart");
}

std::optional<int> run_bench(int argc, char** argv) {
  const int at = bench_index(argc, argv);
  if (at == 0) return {};
  std::string name = "valora bench";  // as --help shows it
  std::vector<char*> arguments{name.data()};
  for (int i = 1; i < argc; ++i)
    if (i != at) arguments.push_back(argv[i]);
  arguments.push_back(nullptr);
  const std::string path = neighbour();
  ::execv(path.c_str(), arguments.data());
  ::execvp(kProgram, arguments.data());
  return fail(not_found(
      "valora bench runs the program valora-bench, which is neither next to this program (" + path +
      ") nor on the PATH; in valora's sources, `make bench` builds it, and `make install` then "
      "installs it, too"));
}

}  // namespace valora::cli
