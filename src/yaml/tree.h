// YAML, and thereby JSON, as a small tree with line numbers. yaml-cpp parses; the tree limits depth
// and size while it grows, and does not expand aliases. Torch-free.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace valora::yaml {

struct Node {
  enum class Kind { kNull, kText, kList, kMap };
  Kind kind = Kind::kNull;
  int line = 1;
  std::string text;     // for kText, including numbers and words, as written
  bool quoted = false;  // for kText
  std::string key;      // for a map's child
  int key_line = 1;     // for a map's child
  std::vector<Node> children;
};

struct Limits {
  size_t max_bytes = size_t{4} << 20;
  size_t max_nodes = size_t{1} << 18;
  int max_depth = 16;
};

// Parses one document. `file` names the source in errors, which have the form "FILE:LINE: …" except
// if the text is too long. Refuses anchors and aliases, tags, a second document, non-text keys and
// repeated keys.
Result<Node> parse(const std::string& text, const std::string& file, const Limits& limits = {});

}  // namespace valora::yaml
