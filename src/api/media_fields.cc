#include "api/media_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/strings.h"
#include "base/video.h"

namespace valora {
namespace {

Error wrong_key(const std::string& field, std::string_view key, std::string_view expected) {
  return invalid(fmt::format("\"{}.{}\" must be {}", field, shortened(key, 60), expected), field);
}

Error unknown_key(const std::string& field, std::string_view key, std::string_view known) {
  return not_implemented(fmt::format("\"{}.{}\" (it takes {}) is not supported by this server",
                                     field, shortened(key, 60), known),
                         field);
}

Status check_object(const Json& kwargs, const std::string& field) {
  if (kwargs.is_object()) return {};
  return invalid(fmt::format("\"{}\" must be an object", field), field);
}

Status read_integer(const Json& value, const std::string& field, const std::string& key,
                    std::optional<int64_t>& out) {
  out = as_integer(value);
  return out ? Status() : wrong_key(field, key, "an integer");
}

bool is_rate(const Json& value) {
  return value.is_number() && value.get<double>() > 0 && value.get<double>() <= kMaxFps;
}

// A number, or a list with one number for all videos or one per video, as Qwen's client sends it.
Status read_rates(const Json& value, const std::string& field, const std::string& name,
                  ProcessorKwargs& out) {
  if (is_rate(value)) {
    out.settings.fps = value.get<double>();
    return {};
  }
  if (!value.is_array() || !std::ranges::all_of(value, is_rate))
    return wrong_key(field, name,
                     fmt::format("a number above 0 and at most {}, or a list of them", kMaxFps));
  out.rates = value.get<std::vector<double>>();
  out.rates_key = name;
  return {};
}

// Transformers' name of the two bounds of Qwen's processors.
Status read_size(const Json& size, const std::string& field, const std::string& name,
                 MediaSettings& sizes) {
  if (!size.is_object() || !size.contains("shortest_edge") || !size.contains("longest_edge"))
    return wrong_key(field, name, "an object with \"shortest_edge\" and \"longest_edge\"");
  for (const auto& [key, value] : size.items()) {
    const bool least = key == "shortest_edge";
    if (!least && key != "longest_edge")
      return unknown_key(field, name + "." + key, "shortest_edge and longest_edge");
    std::optional<int64_t>& bound = least ? sizes.min_pixels : sizes.max_pixels;
    std::optional<int64_t> edge;
    VALORA_CHECK(read_integer(value, field, name + "." + key, edge));
    if (bound && *bound != *edge)
      return invalid(fmt::format("\"{0}.{1}\" and \"{0}.{2}\" differ; send one", field, name,
                                 least ? "min_pixels" : "max_pixels"),
                     field);
    bound = edge;
  }
  return {};
}

// A key, and its name in messages.
struct KeyName {
  const std::string& key;
  std::string name;
};

// sizes: where sizes go. frames: where the choice of frames goes; null for pictures.
Status read_processor_key(const KeyName& named, const Json& value, const std::string& field,
                          MediaSettings& sizes, ProcessorKwargs* frames) {
  const auto& [key, name] = named;
  if (key == "min_pixels") return read_integer(value, field, name, sizes.min_pixels);
  if (key == "max_pixels") return read_integer(value, field, name, sizes.max_pixels);
  if (key == "size") return read_size(value, field, name, sizes);
  const bool rate = key == "fps";
  if (!frames || (!rate && key != "do_sample_frames"))
    return unknown_key(field, name,
                       frames ? "min_pixels, max_pixels, size, fps, do_sample_frames, "
                                "images_kwargs and videos_kwargs"
                              : "min_pixels, max_pixels and size");
  MediaSettings& settings = frames->settings;
  if (rate ? settings.fps || !frames->rates.empty() : settings.do_sample_frames.has_value())
    return invalid(
        fmt::format("\"{0}.{1}\" and \"{0}.{2}\" are both given; send one", field, name, key),
        field);
  if (rate) return read_rates(value, field, name, *frames);
  if (!value.is_boolean()) return wrong_key(field, name, "a boolean");
  settings.do_sample_frames = value.get<bool>();
  return {};
}

Status read_video_io(const Json& video, const std::string& field, MediaSettings& settings) {
  LoaderFrames frames;
  for (const auto& [key, value] : video.items()) {
    if (value.is_null()) continue;
    const std::string name = "video." + key;
    if (key == "num_frames") {
      VALORA_CHECK(read_integer(value, field, name, frames.num_frames));
      if (*frames.num_frames < -1 || *frames.num_frames == 0)
        return wrong_key(field, name, "-1 (all frames) or at least 1");
    } else if (key == "fps") {
      if (!is_rate(value) && value != -1)
        return wrong_key(field, name,
                         fmt::format("-1 (any rate) or above 0 and at most {}", kMaxFps));
      frames.fps = value.get<double>();
    } else {
      return unknown_key(field, name, "num_frames and fps of videos");
    }
  }
  if (frames.num_frames || frames.fps) settings.loader = frames;
  return {};
}

// Only one of the two may choose frames. If the model's processor samples, the loader must keep all
// frames.
Status resolve_frame_choice(MediaSettings& settings, const std::string& field) {
  if (settings.do_sample_frames == true) {
    if (settings.loader && !settings.loader->keeps_all())
      return invalid(fmt::format("\"{}.do_sample_frames\" would sample again the frames that "
                                 "--media-io-kwargs chooses; leave one of them out",
                                 field),
                     field);
    settings.loader.reset();
    settings.do_sample_frames.reset();
    return {};
  }
  if (settings.do_sample_frames == false && !settings.loader)
    return invalid(
        fmt::format("\"{}.do_sample_frames\" false needs --media-io-kwargs with \"video\"", field),
        field);
  if (settings.fps && settings.loader && !settings.do_sample_frames)
    return invalid(
        fmt::format("\"{}.fps\" and --media-io-kwargs both choose frames; leave one of them out",
                    field),
        field);
  return {};
}

}  // namespace

Result<ProcessorKwargs> read_processor_kwargs(const Json& kwargs, const std::string& field) {
  ProcessorKwargs out;
  if (kwargs.is_null()) return out;
  VALORA_CHECK(check_object(kwargs, field));
  for (const auto& [key, value] : kwargs.items()) {
    const bool images = key == "images_kwargs", videos = key == "videos_kwargs";
    if (value.is_null()) continue;
    if (!images && !videos) {
      VALORA_CHECK(read_processor_key({key, key}, value, field, out.settings, &out));
      continue;
    }
    if (!value.is_object()) return wrong_key(field, key, "an object");
    for (const auto& [name, setting] : value.items())
      if (!setting.is_null())
        VALORA_CHECK(read_processor_key({name, key + "." + name}, setting, field,
                                        images ? out.images : out.videos, images ? nullptr : &out));
  }
  return out;
}

Status read_io_kwargs(const Json& kwargs, const std::string& field, MediaSettings& settings) {
  if (kwargs.is_null()) return {};
  VALORA_CHECK(check_object(kwargs, field));
  for (const auto& [modality, value] : kwargs.items()) {
    if (value.is_null() || (value.is_object() && value.empty())) continue;
    if (modality != "video") return unknown_key(field, modality, "num_frames and fps of \"video\"");
    if (!value.is_object()) return wrong_key(field, modality, "an object");
    VALORA_CHECK(read_video_io(value, field, settings));
  }
  return {};
}

Result<MediaSettings> read_media_defaults(const std::string& processor_kwargs,
                                          const std::string& io_kwargs) {
  static const std::string kProcessor = "--mm-processor-kwargs", kIo = "--media-io-kwargs";
  const auto json_of = [](const std::string& text, const std::string& option) -> Result<Json> {
    return text.empty() ? Result<Json>(Json()) : parse_json(text, option);
  };
  VALORA_TRY(processor, json_of(processor_kwargs, kProcessor));
  VALORA_TRY(io, json_of(io_kwargs, kIo));
  VALORA_TRY(kwargs, read_processor_kwargs(processor, kProcessor));
  if (kwargs.images != MediaSettings{} || kwargs.videos != MediaSettings{})
    return wrong_key(kProcessor, "images_kwargs and videos_kwargs",
                     "left out; min_pixels, max_pixels and size are for both");
  if (kwargs.rates.size() > 1) return wrong_key(kProcessor, "fps", "one number");
  if (!kwargs.rates.empty()) kwargs.settings.fps = kwargs.rates.front();
  VALORA_CHECK(read_io_kwargs(io, kIo, kwargs.settings));
  VALORA_CHECK(resolve_frame_choice(kwargs.settings, kProcessor));
  return kwargs.settings;
}

}  // namespace valora
