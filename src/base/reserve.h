// Reserves capacity before a state changes, so that the change itself cannot fail.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace valora {

// Reserves capacity for `more` further elements, growing geometrically as push_back() does.
template <typename T>
void reserve_more(std::vector<T>& list, size_t more = 1) {
  const size_t needed = list.size() + more;
  if (needed > list.capacity()) list.reserve(std::max(needed, 2 * list.capacity()));
}

}  // namespace valora
