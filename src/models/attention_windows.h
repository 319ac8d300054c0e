// The attention windows of a decoder's layers, read from config.json.
#pragma once

#include <cstdint>
#include <vector>

#include "models/spec/config_reader.h"

namespace valora::models {

// Which layers of a family's class in transformers attend to a window.
enum class Windows {
  // None. A window that the file names would be applied to the cache alone, so it is refused.
  kNone,
  // Those of "layer_types" or from "max_window_layers" on, if "use_sliding_window" is set.
  kSwitched,
  // All, unless "sliding_window" is null.
  kAll,
  // Those of "layer_types", or all but each sliding_window_pattern-th.
  kPattern,
  // None: the family reads "layer_types" itself, and its class knows no window.
  kOwnTypes,
};

// Which positions the queries of a layer attend to.
struct LayerWindow {
  int64_t positions = 0;  // the last ones; 0 if these are all that can be served
  bool sliding = false;   // the type of the layer
};

// What a family's class has for missing keys; "sliding_window" is 4096 in all that have windows.
struct WindowDefaults {
  Windows windows = Windows::kNone;
  int64_t max_window_layers = 28;
};

// One entry per layer. max_positions: how many can be served. Throws LoadError for windows that the
// family's class in transformers applies otherwise than the file says, and for other layer_types.
std::vector<LayerWindow> read_windows(const ConfigReader& text, const WindowDefaults& defaults,
                                      int64_t layers, int64_t max_positions);

}  // namespace valora::models
