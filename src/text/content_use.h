// What type a chat template expects of a message's content, found from its syntax tree.
#pragma once

#include "jinja/ast.h"

namespace valora::text {

struct ContentUse {
  // Loops over it, reads fields of its items, or tests whether it is a sequence.
  bool as_list = false;
  bool as_string = false;  // tests whether it is a string
};
ContentUse find_content_use(const jinja::Template& source);

}  // namespace valora::text
