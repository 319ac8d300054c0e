// The parameters of Engine::load_adapter().
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/answer_form.h"

namespace valora {

struct LoadAdapter {
  std::string name;
  std::string path;
  // A folder that `path`, with its links resolved, must not leave, now or when it is read again;
  // empty: no restriction.
  std::string root = {};
  // The name of a loaded adapter to make an alias of; set instead of `path`. Both names share the
  // weights and are independent from then on: reloading or unloading one does not change the other.
  std::string same_as;
  // The default head for requests without a head: one of the adapter's heads, or "" for the
  // language model. Absent: the adapter's only head, or else the language model.
  std::optional<std::string> head;
  std::string question;  // AdapterCard::question; empty: the adapter's own
  AnswerForm form;       // of the task that this name answers
  bool replace = false;  // allow replacing an existing name; running requests keep the old weights
  bool pinned = false;
  // Reads only headers now. The values are read and checked when a request first needs them; an
  // error found then goes to that request. No effect on devices whose adapters are not in the pool.
  bool lazy = false;
  // the name must have this generation now, else kConflict; 0: it must not exist
  std::optional<uint64_t> expected_generation;
};

}  // namespace valora
