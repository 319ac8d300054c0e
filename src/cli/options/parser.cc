#include "cli/options/parser.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "base/log/log.h"
#include "cli/options/config_file.h"
#include "cli/options/spellings.h"

namespace valora::cli {
namespace {

// Makes --help show a list as it is typed, 8 16 32; CLI11 would show [8,16,32].
template <typename T>
void show_list(CLI::Option& option, const std::vector<T>& values) {
  option.default_function([&values] { return fmt::format("{}", fmt::join(values, " ")); });
}

template <typename T>
void show_list(CLI::Option&, const T&) {}

// Adds the option names of a command and its subcommands, recursively. The depth is that of the
// program.
void add_names(const CLI::App& command, KnownOptions& known) {  // NOLINT(*-recursion)
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) {
      known.names.push_back("--" + name);
      if (is_flag(*option)) known.flags.push_back("--" + name);
    }
  for (const CLI::App* below : command.get_subcommands(nullptr)) add_names(*below, known);
}

}  // namespace

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::capture_default_str() {
  option_->capture_default_str();
  return *this;
}

Option& Option::default_str(const std::string& text) {
  option_->default_str(text);
  return *this;
}

Option& Option::type_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Option& Option::group(const std::string& heading) {
  option_->group(heading);
  return *this;
}

Option& Option::delimiter(char separator) {
  option_->delimiter(separator);
  return *this;
}

Option& Option::envname(const std::string& variable) {
  option_->envname(variable);
  return *this;
}

Option& Option::expected(int least, int most) {
  option_->expected(least, most);
  return *this;
}

Option& Option::allow_extra_args(bool allow) {
  option_->allow_extra_args(allow);
  return *this;
}

Option& Option::positive_number() {
  option_->check(CLI::PositiveNumber);
  return *this;
}

Option& Option::range(double least, double most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option& Option::one_of(const std::vector<std::string>& names) {
  option_->check(CLI::IsMember(names));
  return *this;
}

Option& Option::human_integer() {
  option_->transform(CLI::Validator(expand_suffix, "", "human_integer"));
  return *this;
}

Command Command::add_subcommand(const std::string& name, const std::string& help) {
  return Command(app_->add_subcommand(name, help));
}

template <typename T>
Option Command::add_option(const std::string& flag, T& value, const std::string& help) {
  CLI::Option* option = app_->add_option(flag, value, help);
  show_list(*option, value);
  return Option(option);
}

template Option Command::add_option(const std::string&, int&, const std::string&);
template Option Command::add_option(const std::string&, std::optional<int>&, const std::string&);
template Option Command::add_option(const std::string&, int64_t&, const std::string&);
template Option Command::add_option(const std::string&, std::optional<int64_t>&,
                                    const std::string&);
template Option Command::add_option(const std::string&, uint16_t&, const std::string&);
template Option Command::add_option(const std::string&, uint32_t&, const std::string&);
template Option Command::add_option(const std::string&, uint64_t&, const std::string&);
template Option Command::add_option(const std::string&, double&, const std::string&);
template Option Command::add_option(const std::string&, std::optional<double>&, const std::string&);
template Option Command::add_option(const std::string&, std::string&, const std::string&);
template Option Command::add_option(const std::string&, std::vector<int>&, const std::string&);
template Option Command::add_option(const std::string&, std::vector<int64_t>&, const std::string&);
template Option Command::add_option(const std::string&, std::vector<double>&, const std::string&);
template Option Command::add_option(const std::string&, std::vector<std::string>&,
                                    const std::string&);

Option Command::add_flag(const std::string& flag, bool& value, const std::string& help) {
  return Option(app_->add_flag(flag, value, help));
}

template <typename T>
Option Command::add_option_function(const std::string& flag,
                                    const std::function<void(const T&)>& take,
                                    const std::string& help) {
  return Option(app_->add_option_function<T>(flag, take, help));
}

template Option Command::add_option_function(const std::string&,
                                             const std::function<void(const int&)>&,
                                             const std::string&);
template Option Command::add_option_function(const std::string&,
                                             const std::function<void(const double&)>&,
                                             const std::string&);
template Option Command::add_option_function(const std::string&,
                                             const std::function<void(const std::string&)>&,
                                             const std::string&);
template Option Command::add_option_function(
    const std::string&, const std::function<void(const std::vector<std::string>&)>&,
    const std::string&);

Option Command::add_flag_callback(const std::string& flag, const std::function<void()>& take,
                                  const std::string& help) {
  return Option(app_->add_flag_callback(flag, take, help));
}

Option Command::add_flag_function(const std::string& flag, const std::function<void(bool)>& take,
                                  const std::string& help) {
  return Option(app_->add_flag_function(flag, [take](int64_t count) { take(count > 0); }, help));
}

void Command::callback(std::function<void()> function) { app_->callback(std::move(function)); }

Program::Program(const std::string& description, const std::string& version)
    : app_(std::make_unique<CLI::App>(description)) {
  app_->set_version_flag("--version", version);
  app_->fallthrough();
  app_->set_config("--config", "", "YAML file of options, as port: 8000; the command line wins")
      ->type_name("FILE");
  app_->config_formatter(std::make_shared<ConfigFile>(*app_));
}

Program::~Program() = default;

std::optional<int> Program::parse(int argc, const char* const* argv) {
  KnownOptions known;
  add_names(*app_, known);
  const std::vector<std::string> given = as_known({argv + 1, argv + argc}, known);
  std::vector<std::string> arguments(given.rbegin(), given.rend());  // the order CLI11 expects
  try {
    app_->name(argv[0]);
    app_->parse(std::move(arguments));
    return std::nullopt;
  } catch (const CLI::ParseError& e) {
    const bool failed = e.get_exit_code() != 0;  // not --help
    const auto unknown = failed ? app_->remaining(true) : std::vector<std::string>();
    // Before what follows from them, such as a required option that was misspelled.
    for (const std::string& line : describe_unknown(unknown, given, option_names(*app_)))
      std::fprintf(stderr, "error: %s\n", line.c_str());
    return dynamic_cast<const CLI::ExtrasError*>(&e) ? e.get_exit_code() : app_->exit(e);
  }
}

int Program::run(int argc, const char* const* argv, const std::function<int()>& run) {
  app_->require_subcommand(1);
  std::string log_level = "info";
  app_->add_option("--log-level", log_level, "Log level: trace, debug, info, warning, error or off")
      ->capture_default_str();
  try {
    if (const auto status = parse(argc, argv)) return *status;
    set_up_logging(log_level);
    return run();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}

}  // namespace valora::cli
