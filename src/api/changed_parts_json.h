// The parts that an adapter changes as JSON, for servers and `valora inspect`.
#pragma once

#include <vector>

#include "api/cards.h"

namespace valora {

// Tree: Json or OrderedJson.
template <typename Tree>
Tree changed_parts_json(const std::vector<ChangedPart>& changes) {
  Tree list = Tree::array();
  for (const ChangedPart& part : changes)
    list.push_back({{"part", part.name},
                    {"linears", part.linears},
                    {"of", part.of},
                    {"ranks", part.ranks},
                    {"scales", part.scales}});
  return list;
}

}  // namespace valora
