#include "yaml/tree.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string_view>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "base/text/strings.h"

namespace valora::yaml {
namespace {

// Thrown in yaml-cpp's callbacks to abort the parse; caught in parse().
struct Refusal {
  int line;
  std::string message;
};

int line_of(const YAML::Mark& mark) { return mark.is_null() ? 1 : mark.line + 1; }

class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const Limits& limits) : limits_(limits) {}
  Node take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0) throw Refusal{line_of(mark), "a second document begins; a file has one"};
  }
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark& mark, const std::string&) override { refuse_anchor(mark); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse_anchor(mark); }

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(begin(mark, "", anchor));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = begin(mark, tag, anchor);
    node.kind = Node::Kind::kText;
    node.text = value;
    node.quoted = tag == "!";
    add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(begin(mark, tag, anchor), Node::Kind::kList);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(begin(mark, tag, anchor), Node::Kind::kMap);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Node node;
    bool has_key = false;  // in a map: the next child's key has been read
    std::string key;
    int key_line = 1;
  };

  [[noreturn]] static void refuse_anchor(const YAML::Mark& mark) {
    throw Refusal{line_of(mark), "anchors and aliases are not supported; write the value out"};
  }

  // yaml-cpp gives plain values the tag "?", quoted ones "!".
  Node begin(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != 0) refuse_anchor(mark);
    if (!tag.empty() && tag != "?" && tag != "!")
      throw Refusal{line_of(mark), "tags are not supported"};
    if (++nodes_ > limits_.max_nodes)
      throw Refusal{line_of(mark), "more than " + std::to_string(limits_.max_nodes) + " values"};
    Node node;
    node.line = line_of(mark);
    return node;
  }

  void open(Node node, Node::Kind kind) {
    if (static_cast<int>(open_.size()) >= limits_.max_depth)
      throw Refusal{node.line,
                    "nested deeper than " + std::to_string(limits_.max_depth) + " levels"};
    if (awaits_key()) throw Refusal{node.line, "a key must be text"};
    node.kind = kind;
    open_.push_back({std::move(node)});
  }

  void close() {
    Node node = std::move(open_.back().node);
    open_.pop_back();
    if (node.kind == Node::Kind::kMap) check_keys(node);
    add(std::move(node));
  }

  static void check_keys(const Node& map) {
    std::vector<const Node*> sorted;
    for (const Node& child : map.children) sorted.push_back(&child);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](auto* a, auto* b) { return a->key < b->key; });
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end(),
                                          [](auto* a, auto* b) { return a->key == b->key; });
    if (twice != sorted.end())
      throw Refusal{(*std::next(twice))->key_line,
                    "the key \"" + shortened((*twice)->key) + "\" appears twice"};
  }

  bool awaits_key() const {
    return !open_.empty() && open_.back().node.kind == Node::Kind::kMap && !open_.back().has_key;
  }

  void add(Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (awaits_key()) {
      if (node.kind != Node::Kind::kText) throw Refusal{node.line, "a key must be text"};
      parent.has_key = true;
      parent.key = std::move(node.text);
      parent.key_line = node.line;
      return;
    }
    if (parent.has_key) {
      node.key = std::move(parent.key);
      node.key_line = parent.key_line;
      parent.has_key = false;
    }
    parent.node.children.push_back(std::move(node));
  }

  const Limits limits_;
  std::vector<Open> open_;
  Node root_;
  size_t nodes_ = 0;
  int documents_ = 0;
};

// The length of the UTF-8 character at the start of `text`; 0 if it is invalid, or a null, which
// YAML excludes and by which yaml-cpp would take the text for UTF-16 or UTF-32.
size_t character_size(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(0), second = byte(1);
  const size_t size = first == 0                      ? 0
                      : first < 0x80                  ? 1
                      : first >= 0xC2 && first < 0xE0 ? 2
                      : (first & 0xF0) == 0xE0        ? 3
                      : first >= 0xF0 && first < 0xF5 ? 4
                                                      : 0;
  for (size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  // Overlong, a surrogate, or above U+10FFFF.
  const bool refused = (first == 0xE0 && second < 0xA0) || (first == 0xED && second >= 0xA0) ||
                       (first == 0xF0 && second < 0x90) || (first == 0xF4 && second >= 0x90);
  return refused ? 0 : size;
}

// The line of the first invalid UTF-8 byte, which yaml-cpp would accept.
std::optional<int> line_of_foreign_byte(std::string_view text) {
  int line = 1;
  while (!text.empty()) {
    const size_t size = character_size(text);
    if (size == 0) return line;
    line += text.front() == '\n';
    text.remove_prefix(size);
  }
  return {};
}

// yaml-cpp quotes single bytes of the text, which may be parts of characters.
std::string ascii(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7F; }, '?');
  return text;
}

}  // namespace

Result<Node> parse(const std::string& text, const std::string& file, const Limits& limits) {
  if (text.size() > limits.max_bytes)
    return Error{ErrorCode::kPayloadTooLarge,
                 file + " is larger than " + std::to_string(limits.max_bytes) + " bytes", file};
  const auto refuse = [&](int line, const std::string& message) {
    return invalid(file + ":" + std::to_string(line) + ": " + message);
  };
  if (const auto line = line_of_foreign_byte(text)) return refuse(*line, "this is not UTF-8");
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    TreeBuilder builder(limits);
    while (parser.HandleNextDocument(builder)) {
    }
    return builder.take_root();
  } catch (const Refusal& refusal) {
    return refuse(refusal.line, refusal.message);
  } catch (const YAML::Exception& e) {
    return refuse(line_of(e.mark), "this is not YAML: " + ascii(shortened(e.msg)));
  }
}

}  // namespace valora::yaml
