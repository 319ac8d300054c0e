// Wraps CLI11 for commands, options and parsing. Only parser.cc and config_file.h include CLI11,
// because every file that does takes ten seconds longer to compile.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace valora::cli {

// Methods are named after those of CLI::Option.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option& required();
  Option& capture_default_str();  // --help shows the current value as the default
  Option& default_str(const std::string& text);
  Option& type_name(const std::string& name);
  Option& group(const std::string& heading);  // heading in --help
  Option& delimiter(char separator);          // one argument may hold several values
  Option& envname(const std::string& variable);
  Option& expected(int least, int most);
  Option& allow_extra_args(bool allow);  // several values may follow the option

  Option& positive_number();
  Option& range(double least, double most);
  Option& one_of(const std::vector<std::string>& names);
  Option& human_integer();  // an integer that may have a suffix (spellings.h)

 private:
  CLI::Option* option_;
};

// A command to which options and subcommands are added.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}
  Command add_subcommand(const std::string& name, const std::string& help);
  // Parsing sets `value`. The template is instantiated for its types in parser.cc.
  template <typename T>
  Option add_option(const std::string& flag, T& value, const std::string& help);
  Option add_flag(const std::string& flag, bool& value, const std::string& help);

  // Parsing calls `take`, which reports a bad value by throwing std::invalid_argument.
  template <typename T>
  Option add_option_function(const std::string& flag, const std::function<void(const T&)>& take,
                             const std::string& help);
  Option add_flag_callback(const std::string& flag, const std::function<void()>& take,
                           const std::string& help);
  // take: called with false for --flag=false.
  Option add_flag_function(const std::string& flag, const std::function<void(bool)>& take,
                           const std::string& help);

  // Called if the command is given.
  void callback(std::function<void()> function);

 private:
  CLI::App* app_;
};

// The parser and the program's own options, which may also follow a subcommand.
class Program {
 public:
  Program(const std::string& description, const std::string& version);
  ~Program();
  Command command() { return Command(app_.get()); }

  // Absent if a subcommand is to be run; otherwise the exit status, after --help or an error has
  // been printed. Exceptions thrown by option callbacks pass through.
  std::optional<int> parse(int argc, const char* const* argv);
  // All of a main(): parses the subcommand and --log-level, then calls `run`, which parsing has
  // set. Returns the exit status. Exceptions are printed.
  int run(int argc, const char* const* argv, const std::function<int()>& run);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace valora::cli
