// What a chat template expects a message's content to be, read off its tree.
#pragma once

#include "text/jinja/ast.h"

namespace valora::text::jinja {

struct ContentUse {
  bool as_list =
      false;  // loops over it, indexes it by an item's fields, or asks whether it is a sequence
  bool as_string = false;  // asks whether it is a string
};
ContentUse find_content_use(const Template& source);

}  // namespace valora::text::jinja
