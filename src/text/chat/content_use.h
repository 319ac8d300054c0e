// The type of message content that a chat template expects, derived from its syntax tree.
#pragma once

#include "jinja/syntax/ast.h"

namespace valora::text {

struct ContentUse {
  // It loops over the content, reads fields of its items, or tests whether it is a sequence.
  bool as_list = false;
  bool as_string = false;  // it tests whether the content is a string
};
ContentUse find_content_use(const jinja::Template& source);

}  // namespace valora::text
