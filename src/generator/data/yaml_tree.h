// YAML (and with it JSON) as a small tree that knows its lines. yaml-cpp parses; the tree is our
// own, so that depth and size are bounded while it grows and aliases cannot multiply it.
// Torch-free.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace valora::generator {

struct YamlNode {
  enum class Kind { kNull, kText, kList, kMap };
  Kind kind = Kind::kNull;
  int line = 1;
  std::string text;     // of kText: numbers and words too, as they are written
  bool quoted = false;  // of kText
  std::string key;      // of a map's child
  int key_line = 1;     // of a map's child
  std::vector<YamlNode> children;
};

struct YamlLimits {
  size_t max_bytes = size_t{4} << 20;
  size_t max_nodes = size_t{1} << 18;
  int max_depth = 16;
};

// One document. `file` names the source in errors, all of which are "FILE:LINE: …" but for that of
// too many bytes. Refused: anchors and aliases, tags, a second document, keys that are no text, a
// key twice.
Result<YamlNode> parse_yaml(const std::string& text, const std::string& file,
                            const YamlLimits& limits = {});

}  // namespace valora::generator
