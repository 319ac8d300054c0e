#include "cli/options/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/json/json.h"
#include "base/text/strings.h"
#include "cli/options/spellings.h"
#include "yaml/tree.h"

namespace valora::cli {
namespace {

using Kind = yaml::Node::Kind;

// The program, the command given, its subcommand, and so on.
std::vector<const CLI::App*> given_commands(const CLI::App& program) {
  std::vector<const CLI::App*> chain;
  for (const CLI::App* command = &program; command != nullptr;) {
    chain.push_back(command);
    const auto given = command->get_subcommands();
    command = given.empty() ? nullptr : given.front();
  }
  return chain;
}

struct Place {
  std::vector<std::string> commands;  // from the program to the option's command
  const CLI::Option* option;
};

std::optional<Place> find_option(const std::vector<const CLI::App*>& chain,
                                 const std::string& name) {
  for (size_t i = chain.size(); i-- > 0;) {
    const CLI::Option* option = chain[i]->get_option_no_throw("--" + name);
    if (option == nullptr) continue;
    Place place{{}, option};
    for (size_t j = 1; j <= i; ++j) place.commands.push_back(chain[j]->get_name());
    return place;
  }
  return {};
}

// Converts an unquoted YAML scalar to a JSON value.
Json plain_value(const std::string& text) {
  const Json value = Json::parse(text, nullptr, false);
  return value.is_number() || value.is_boolean() ? value : Json(text);
}

// Recursion is safe: the tree's depth is limited.
Json as_json(const yaml::Node& node) {  // NOLINT(misc-no-recursion)
  switch (node.kind) {
    case Kind::kNull: return nullptr;
    case Kind::kText: return node.quoted ? Json(node.text) : plain_value(node.text);
    case Kind::kList: {
      Json list = Json::array();
      for (const yaml::Node& child : node.children) list.push_back(as_json(child));
      return list;
    }
    case Kind::kMap: break;
  }
  Json map = Json::object();
  for (const yaml::Node& child : node.children) map[child.key] = as_json(child);
  return map;
}

// Uses the words that CLI11 accepts as flag values.
bool is_off(const std::string& text) {
  try {
    return CLI::detail::to_flag_value(text) < 0;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

// Reads one file.
class Reader {
 public:
  Reader(const CLI::App& program, std::string file)
      : chain_(given_commands(program)), names_(option_names(program)), file_(std::move(file)) {}

  CLI::ConfigItem item(const yaml::Node& node) {
    std::string name = node.key;
    std::replace(name.begin(), name.end(), '_', '-');
    const auto place = find_option(chain_, name);
    if (!place) refuse(node.key_line, describe_unknown({"--" + name}, {}, names_).front());
    if (!place->option->get_configurable())
      refuse(node.key_line, "--" + name + " can only be given on the command line");
    if (!seen_.insert(place->option).second)
      refuse(node.key_line,
             fmt::format("\"{}\" is another name of an option that the file already sets",
                         shortened(node.key)));
    if (const std::string opposite = turned_off(*place, node, "--" + name); !opposite.empty())
      return {place->commands, opposite.substr(2), {"true"}};
    return {place->commands, name, inputs(node)};
  }

  [[noreturn]] void refuse(int line, const std::string& what) const {
    throw std::invalid_argument(fmt::format("{}:{}: {}", file_, line, what));
  }

 private:
  // The option that a flag set to false turns into, such as --no-flag; empty if there is none.
  std::string turned_off(const Place& place, const yaml::Node& node,
                         const std::string& name) const {
    const bool off = node.kind == Kind::kText && is_off(node.text);
    return off && is_flag(*place.option) ? opposite_of(name, names_) : "";
  }

  std::vector<std::string> inputs(const yaml::Node& node) const {
    if (node.kind != Kind::kList) return {input(node, node.key)};
    std::vector<std::string> values;
    for (const yaml::Node& child : node.children) values.push_back(input(child, node.key));
    if (values.empty()) refuse(node.key_line, no_value(node.key));
    return values;
  }

  std::string input(const yaml::Node& node, const std::string& key) const {
    if (node.kind == Kind::kText) return node.text;
    if (node.kind == Kind::kMap) return as_json(node).dump();
    if (node.kind == Kind::kNull) refuse(node.line, no_value(key));
    refuse(node.line, fmt::format("\"{}\" has a list within a list", shortened(key)));
  }

  static std::string no_value(const std::string& key) {
    return fmt::format("\"{}\" has no value; leave it out instead", shortened(key));
  }

  const std::vector<const CLI::App*> chain_;
  const std::vector<std::string> names_;
  const std::string file_;
  std::set<const CLI::Option*> seen_;
};

std::string read_all(std::istream& input, size_t max_bytes) {
  std::string text(max_bytes + 1, '\0');  // one extra byte reveals an oversized file
  input.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(input.gcount()));
  return text;
}

}  // namespace

bool is_flag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

std::vector<std::string> option_names(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::App* command : given_commands(program))
    for (const CLI::Option* option : command->get_options())
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<CLI::ConfigItem> ConfigFile::from_config(std::istream& input) const {
  if (program_.get_subcommands().empty()) return {};  // reported elsewhere
  const std::string file = program_.get_config_ptr()->results().front();
  const yaml::Limits limits{.max_bytes = size_t{1} << 20};
  const auto tree = yaml::parse(read_all(input, limits.max_bytes), file, limits);
  if (!tree.ok()) throw std::invalid_argument(tree.error().message);
  if (tree->kind == Kind::kNull) return {};
  Reader reader(program_, file);
  if (tree->kind != Kind::kMap)
    reader.refuse(tree->line, "a file of options is a map, such as port: 8000");
  std::vector<CLI::ConfigItem> items;
  for (const yaml::Node& node : tree->children) items.push_back(reader.item(node));
  return items;
}

}  // namespace valora::cli
