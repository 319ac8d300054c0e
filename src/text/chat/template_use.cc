#include "text/chat/template_use.h"

#include <cctype>
#include <map>
#include <set>

namespace valora::text {
namespace {

using namespace jinja;  // the tree's node types

constexpr int kMaxRounds = 10;  // each follows names through one more assignment

enum class Role : uint8_t { kMessages, kMessage, kContent };

// Tracks the names of the message list, of a message and of its content through loops, assignments
// and macro calls until no new names are found.
class Finder {
 public:
  explicit Finder(const Template& source) : source_(source) {
    names_[Role::kMessages].insert("messages");
  }

  ContentUse run() {
    for (int round = 0; round < kMaxRounds; ++round) {
      const size_t known = count();
      visit(source_.body);
      if (count() == known) break;
    }
    return use_;
  }

 private:
  size_t count() {
    size_t total = macros_.size();
    for (const auto& [role, names] : names_) total += names.size();
    return total;
  }

  bool named(Role role, const std::string& name) { return names_[role].contains(name); }

  // The dotted name of a variable or of a namespace's attribute; empty for other expressions.
  static std::string name_of(const Expr& expr) {
    if (const auto* name = std::get_if<Name>(&expr.node)) return name->name;
    const auto* attribute = std::get_if<Attribute>(&expr.node);
    if (!attribute) return {};
    const std::string object = name_of(*attribute->object);
    return object.empty() ? object : object + "." + attribute->name;
  }

  static bool is_content_field(const Expr& expr, const Expr*& object) {
    if (const auto* attribute = std::get_if<Attribute>(&expr.node)) {
      object = attribute->object.get();
      return attribute->name == "content";
    }
    if (const auto* item = std::get_if<Item>(&expr.node)) {
      object = item->object.get();
      const auto* key = std::get_if<Literal>(&item->key->node);
      return key && key->value.is_string() && key->value.text() == "content";
    }
    if (const auto* call = std::get_if<Call>(&expr.node)) {  // message.get('content')
      const auto* method = std::get_if<Attribute>(&call->function->node);
      if (!method || method->name != "get" || call->arguments.positional.empty()) return false;
      object = method->object.get();
      const auto* key = std::get_if<Literal>(&call->arguments.positional[0]->node);
      return key && key->value.is_string() && key->value.text() == "content";
    }
    return false;
  }

  bool is(Role role, const Expr& expr) {
    if (named(role, name_of(expr))) return true;
    if (const auto* conditional = std::get_if<Conditional>(&expr.node))
      return is(role, *conditional->then) ||
             (conditional->otherwise && is(role, *conditional->otherwise));
    if (const auto* binary = std::get_if<Binary>(&expr.node))
      return is(role, *binary->left) || is(role, *binary->right);
    if (const auto* filter = std::get_if<Filter>(&expr.node)) {
      if (!filter->subject) return false;
      const bool takes_one = filter->name == "first" || filter->name == "last";
      return is(role == Role::kMessage && takes_one ? Role::kMessages : role, *filter->subject);
    }
    if (const auto* slice = std::get_if<Slice>(&expr.node))
      return role != Role::kMessage && is(role, *slice->object);
    const Expr* object = nullptr;
    if (role == Role::kContent)
      return is_content_field(expr, object) && is(Role::kMessage, *object);
    const auto* item = std::get_if<Item>(&expr.node);
    return role == Role::kMessage && item && is(Role::kMessages, *item->object);
  }

  void learn(const std::string& name, const Expr& value) {
    for (const Role role : {Role::kMessages, Role::kMessage, Role::kContent})
      if (is(role, value)) names_[role].insert(name);
  }

  void visit(const Body& body) {
    for (const Statement& statement : body)
      std::visit([this](const auto& node) { visit_node(node); }, statement.node);
  }

  void visit_node(const Text&) {}
  void visit_node(const Break&) {}
  void visit_node(const Continue&) {}
  void visit_node(const Output& node) { visit(*node.value); }
  void visit_node(const Generation& node) { visit(node.body); }
  void visit_node(const FilterBlock& node) { visit(node.body); }
  void visit_node(const SetBlock& node) { visit(node.body); }
  void visit_node(const If& node) {
    for (const auto& [condition, body] : node.branches) {
      visit(*condition);
      visit(body);
    }
    visit(node.otherwise);
  }
  void visit_node(const For& node) {
    visit(*node.iterable);
    if (node.condition) visit(*node.condition);
    if (is(Role::kMessages, *node.iterable) && !node.target.tuple)
      names_[Role::kMessage].insert(node.target.name);
    if (is(Role::kContent, *node.iterable)) use_.as_list = true;
    visit(node.body);
    visit(node.otherwise);
  }
  void visit_node(const Set& node) {
    visit(*node.value);
    if (node.target.tuple) return;
    learn(node.target.attribute.empty() ? node.target.name
                                        : node.target.name + "." + node.target.attribute,
          *node.value);
  }
  void visit_node(const With& node) {
    for (const auto& [name, value] : node.variables) {
      visit(*value);
      learn(name, *value);
    }
    visit(node.body);
  }
  void visit_node(const Macro& node) {
    macros_[node.name] = &node;
    visit(node.body);
  }

  void visit(const Expr& expr) {
    if (const auto* call = std::get_if<Call>(&expr.node)) follow(*call);
    if (const auto* test = std::get_if<Test>(&expr.node);
        test && is(Role::kContent, *test->subject)) {
      if (test->name == "string") use_.as_string = true;
      if (test->name == "sequence" || test->name == "iterable") use_.as_list = true;
    }
    if (const auto* filter = std::get_if<Filter>(&expr.node);
        filter && filter->subject && is(Role::kContent, *filter->subject))
      if (filter->name == "selectattr" || filter->name == "rejectattr" || filter->name == "map")
        use_.as_list = true;
    // content[0].type implies a list: the items of a string have no fields.
    const Expr* field = nullptr;
    if (const auto* attribute = std::get_if<Attribute>(&expr.node)) field = attribute->object.get();
    if (const auto* item = std::get_if<Item>(&expr.node)) field = item->object.get();
    const auto* element = field ? std::get_if<Item>(&field->node) : nullptr;
    if (element && is(Role::kContent, *element->object)) use_.as_list = true;
    each_part(expr, [this](const Expr& part) { visit(part); });
  }

  // Inside a macro, arguments are known by the names of its parameters.
  void follow(const Call& call) {
    const auto macro = macros_.find(name_of(*call.function));
    if (macro == macros_.end()) return;
    const auto& parameters = macro->second->parameters;
    for (size_t i = 0; i < std::min(parameters.size(), call.arguments.positional.size()); ++i)
      learn(parameters[i].first, *call.arguments.positional[i]);
    for (const auto& [name, value] : call.arguments.named) learn(name, *value);
  }

  const Template& source_;
  std::map<Role, std::set<std::string>> names_;
  std::map<std::string, const Macro*> macros_;
  ContentUse use_;
};

}  // namespace

ContentUse find_content_use(const Template& source) { return Finder(source).run(); }

namespace {

bool has_word(std::string_view text, std::string_view word) {
  const auto part_of_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !part_of_word(text[at - 1])) &&
        (end == text.size() || !part_of_word(text[end])))
      return true;
  }
  return false;
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Published templates describe the format of calls in their instructions to the model.
ToolCallStyle style_of(std::string_view source) {
  if (has(source, "<tool_call>")) return ToolCallStyle::kHermes;
  if (has(source, "func_name1(") || has(source, "(params_name1=")) return ToolCallStyle::kPythonic;
  if (has(source, "<|python_tag|>") || has(source, "\"parameters\": dictionary") ||
      has(source, "Environment: ipython"))
    return ToolCallStyle::kLlama3Json;
  return ToolCallStyle::kHermes;
}

}  // namespace

ToolUse find_tool_use(std::string_view source) {
  return {has_word(source, "tools"), style_of(source)};
}

}  // namespace valora::text
