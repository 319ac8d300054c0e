#include "base/json/parse_ordered.h"

#include "base/json/json_tree.h"

namespace valora {

OrderedJson parse_ordered(std::string_view text) {
  JsonTree<OrderedJson> tree;
  return OrderedJson::sax_parse(text, &tree) ? tree.take()
                                             : OrderedJson(OrderedJson::value_t::discarded);
}

}  // namespace valora
