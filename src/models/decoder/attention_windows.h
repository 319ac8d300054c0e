// Reads the attention windows of a decoder's layers from config.json.
#pragma once

#include <cstdint>
#include <vector>

#include "models/spec/config_reader.h"

namespace valora::models {

// Which layers attend to a window, as the family's class in transformers decides it.
enum class Windows {
  // None. The class would apply a window named in the file only to its cache, so it is refused.
  kNone,
  // The layers that "layer_types" names, or those from "max_window_layers" on, if
  // "use_sliding_window" is set.
  kSwitched,
  // All layers, if "use_sliding_window" is set.
  kSwitchedAll,
  // All layers, unless "sliding_window" is null.
  kAll,
  // The layers that "layer_types" names, or all but every sliding_window_pattern-th.
  kPattern,
  // None: the family reads "layer_types" itself, and its class has no windows.
  kOwnTypes,
};

// The positions that the queries of a layer attend to.
struct LayerWindow {
  int64_t positions = 0;  // the last this many; 0: all that can be served
  bool sliding = false;   // the layer's type is sliding attention
};

// Defaults of a family's class for missing keys; "sliding_window" defaults to 4096 in all classes
// with windows.
struct WindowDefaults {
  Windows windows = Windows::kNone;
  int64_t max_window_layers = 28;
};

// One entry per layer. max_positions: the number of positions that can be served. Throws LoadError
// for unknown layer_types, and for windows that the family's class in transformers applies
// differently from the file.
std::vector<LayerWindow> read_windows(const ConfigReader& text, const WindowDefaults& defaults,
                                      int64_t layers, int64_t max_positions);

}  // namespace valora::models
