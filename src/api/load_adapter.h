// What is asked when an adapter is loaded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace valora {

struct LoadAdapter {
  std::string name;
  std::string path;
  // Another name for an adapter that is loaded, in the place of a path: both share its weights,
  // neither needs the other from then on. It stands for the adapter as it is now, and is not
  // changed where that name is loaded anew.
  std::string same_as;
  // What answers requests to this name that name no head: one of the adapter's heads, "" the
  // language model; absent: the only head that the adapter has, or else the language model.
  std::optional<std::string> head;
  std::string question;  // of AdapterCard; empty: the adapter's own
  bool replace = false;  // load_inplace: the name may exist; running requests keep the old content
  bool pinned = false;
  std::optional<uint64_t>
      expected_generation;  // 0: must not exist; else compare-and-swap (kConflict)
};

}  // namespace valora
