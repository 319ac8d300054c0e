#include "cli/options/spellings.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/json/json.h"
#include "base/text/strings.h"

namespace valora::cli {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kShort{{
    {"-tp", "--tensor-parallel-size"},
    {"-pp", "--pipeline-parallel-size"},
    {"-dp", "--data-parallel-size"},
    {"-q", "--quantization"},
    {"-O", "--optimization-level"},
}};

struct Argument {
  std::string name;
  std::optional<std::string> value;  // after "="
};

Argument split(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return {text, {}};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::string joined(const Argument& argument) {
  return argument.value ? argument.name + "=" + *argument.value : argument.name;
}

std::string with_dashes(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

std::vector<std::string> keys_of(const std::string& path) {
  std::vector<std::string> keys{""};
  for (const char c : path)
    if (c == '.')
      keys.emplace_back();
    else
      keys.back() += c;
  return keys;
}

// Splits -O3 into -O 3.
Argument split_level(Argument argument) {
  if (argument.name.size() != 3 || !argument.name.starts_with("-O")) return argument;
  return {"-O", argument.name.substr(2)};
}

class Rewriter {
 public:
  explicit Rewriter(const KnownOptions& known) : known_(known) {}

  std::vector<std::string> rewrite(const std::vector<std::string>& arguments) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i] == "--") {
        out_.insert(out_.end(), arguments.begin() + static_cast<long>(i), arguments.end());
        break;
      }
      Argument argument = in_full(arguments[i]);
      const bool has_next = i + 1 < arguments.size();
      if (is_in(argument.name, known_.flags)) {
        const bool beside = !argument.value && has_next && truth_of(arguments[i + 1]);
        if (beside) argument.value = arguments[++i];
        out_.push_back(flag(argument));
        continue;
      }
      const auto [name, keys] = option_and_keys(argument.name);
      if (keys.empty() || !(argument.value || has_next)) {
        out_.push_back(joined(argument));
        continue;
      }
      gather(name, keys, argument.value ? *argument.value : arguments[++i]);
    }
    for (const Gathered& option : gathered_) out_[option.at] = option.value.dump();
    return std::move(out_);
  }

 private:
  struct Gathered {
    std::string name;
    size_t at;  // index of its value in out_
    OrderedJson value;
  };

  static bool is_in(const std::string& name, const std::vector<std::string>& names) {
    return std::ranges::find(names, name) != names.end();
  }
  bool is_known(const std::string& name) const { return is_in(name, known_.names); }

  std::string flag(const Argument& argument) const {
    const std::optional<bool> on = argument.value ? truth_of(*argument.value) : true;
    if (!on) return joined(argument);
    if (*on) return argument.name;
    const std::string opposite = opposite_of(argument.name, known_.names);
    return opposite.empty() ? argument.name + "=false" : opposite;
  }

  Argument in_full(const std::string& text) const {
    Argument argument = split(text);
    if (is_known(argument.name)) return argument;
    const Argument level = split_level(argument);
    for (const auto& [letters, name] : kShort)
      if (level.name == letters && is_known(std::string(name)))
        return {std::string(name), level.value};
    if (argument.name.starts_with("--") && is_known(with_dashes(argument.name)))
      argument.name = with_dashes(argument.name);
    return argument;
  }

  // "--name" and {"a", "b"} for --name.a.b; no keys if the text has another form.
  std::pair<std::string, std::vector<std::string>> option_and_keys(const std::string& text) const {
    const size_t dot = text.find('.');
    if (!text.starts_with("--") || dot == std::string::npos || is_known(text)) return {text, {}};
    const std::string name = with_dashes(text.substr(0, dot));
    std::vector<std::string> keys = keys_of(text.substr(dot + 1));
    const bool complete = !std::ranges::any_of(keys, &std::string::empty);
    if (!is_known(name) || !complete) return {text, {}};
    return {name, std::move(keys)};
  }

  void gather(const std::string& name, const std::vector<std::string>& keys,
              const std::string& text) {
    auto option = std::ranges::find(gathered_, name, &Gathered::name);
    if (option == gathered_.end()) {
      out_.push_back(name);
      out_.emplace_back();
      gathered_.push_back({name, out_.size() - 1, OrderedJson::object()});
      option = std::prev(gathered_.end());
    }
    OrderedJson* place = &option->value;
    for (const std::string& key : keys) {
      if (!place->is_object()) *place = OrderedJson::object();
      place = &(*place)[key];
    }
    *place = OrderedJson::accept(text) ? OrderedJson::parse(text) : OrderedJson(text);
  }

  const KnownOptions& known_;
  std::vector<std::string> out_;
  std::vector<Gathered> gathered_;
};

}  // namespace

std::vector<std::string> as_known(const std::vector<std::string>& arguments,
                                  const KnownOptions& known) {
  return Rewriter(known).rewrite(arguments);
}

std::optional<bool> truth_of(std::string_view text) {
  const std::string lower = lower_case(text.substr(0, 6));
  if (lower == "true") return true;
  if (lower == "false") return false;
  return {};
}

std::string opposite_of(const std::string& flag, const std::vector<std::string>& names) {
  constexpr std::string_view kNo = "--no-";
  const std::string opposite =
      flag.starts_with(kNo) ? "--" + flag.substr(kNo.size()) : std::string(kNo) + flag.substr(2);
  return std::ranges::find(names, opposite) == names.end() ? "" : opposite;
}

}  // namespace valora::cli
