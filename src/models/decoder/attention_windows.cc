#include "models/decoder/attention_windows.h"

#include <optional>
#include <string>

namespace valora::models {
namespace {

constexpr char kFull[] = "full_attention", kSliding[] = "sliding_attention";

// The window that the class applies, in positions; nullopt: none.
std::optional<int64_t> window_of(const ConfigReader& text, Windows windows) {
  constexpr int64_t kDefault = 4096;
  const bool switched = windows == Windows::kSwitched || windows == Windows::kSwitchedAll;
  if (switched && !text.flag("use_sliding_window", false)) return {};
  if (text.has("sliding_window")) return text.integer("sliding_window");
  if (text.json().contains("sliding_window") || windows == Windows::kNone) return {};
  return kDefault;
}

std::vector<std::string> read_types(const ConfigReader& text, int64_t layers) {
  std::vector<std::string> types = text.texts("layer_types");
  for (const std::string& type : types)
    if (type != kFull && type != kSliding)
      text.refuse("layers of type \"" + type + "\" (layer_types) are not supported");
  if (!types.empty() && types.size() != static_cast<size_t>(layers))
    text.refuse("\"layer_types\" has " + std::to_string(types.size()) + " entries for " +
                std::to_string(layers) + " layers");
  return types;
}

[[noreturn]] void refuse_type(const ConfigReader& text, const std::string& type) {
  text.refuse("layers of type \"" + type +
              "\" (layer_types) do not agree with the windows that the model's class applies");
}

}  // namespace

std::vector<LayerWindow> read_windows(const ConfigReader& text, const WindowDefaults& defaults,
                                      int64_t layers, int64_t max_positions) {
  const Windows windows = defaults.windows;
  if (windows == Windows::kOwnTypes) return std::vector<LayerWindow>(static_cast<size_t>(layers));
  const std::optional<int64_t> window = window_of(text, windows);
  const bool cuts = window && *window < max_positions;
  const std::vector<std::string> types = read_types(text, layers);
  std::vector<LayerWindow> result(static_cast<size_t>(layers));
  if (windows == Windows::kNone) {
    if (cuts && text.flag("use_sliding_window", true))
      text.refuse("sliding-window attention (sliding_window " + std::to_string(*window) +
                  ") is not applied by this architecture to whole prompts, but to its cache; "
                  "remove the key if the model attends to all positions");
    for (const std::string& type : types)
      if (type == kSliding && (!window || cuts)) refuse_type(text, type);
    return result;
  }
  const double full =
      text.number("max_window_layers", static_cast<double>(defaults.max_window_layers));
  const int64_t pattern =
      windows == Windows::kPattern ? text.integer("sliding_window_pattern", 6) : 1;
  for (size_t i = 0; i < result.size(); ++i) {
    bool slides = window.has_value();
    if (windows == Windows::kSwitched)
      slides = types.empty() ? slides && static_cast<double>(i) >= full : types[i] == kSliding;
    if (windows == Windows::kPattern)
      slides = types.empty() ? (static_cast<int64_t>(i) + 1) % pattern != 0 : types[i] == kSliding;
    if (slides && !window) refuse_type(text, kSliding);
    // The class ignores layer_types here (all its layers have the window), but its cache follows
    // them.
    const bool all = windows == Windows::kAll || windows == Windows::kSwitchedAll;
    if (all && !types.empty() && (types[i] == kSliding) != slides && (cuts || !window))
      refuse_type(text, types[i]);
    result[i] = {slides && cuts ? *window : 0, slides};
  }
  return result;
}

}  // namespace valora::models
