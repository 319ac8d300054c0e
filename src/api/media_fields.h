// Reads vLLM's objects that set how media are prepared, in requests and on command lines. Errors
// are kInvalidArgument, or kNotImplemented for a key that has no meaning here; they name the key
// and carry `field`.
#pragma once

#include <string>
#include <vector>

#include "api/media_settings.h"
#include "base/json/json.h"
#include "base/result.h"

namespace valora {

struct ProcessorKwargs {
  MediaSettings settings;
  MediaSettings images, videos;  // sizes for one kind of media, which replace those of `settings`
  std::vector<double> rates;     // a list in "fps"; settings.fps is then absent
  std::string rates_key;         // of the list, or "videos_kwargs.fps"
};

// "mm_processor_kwargs": min_pixels and max_pixels, or both as "size"; fps, do_sample_frames; the
// same for one kind of media in "images_kwargs" and "videos_kwargs". null: nothing.
Result<ProcessorKwargs> read_processor_kwargs(const Json& kwargs, const std::string& field);

// Reads "media_io_kwargs" on top of `settings`. null: no change.
Status read_io_kwargs(const Json& kwargs, const std::string& field, MediaSettings& settings);

// A server's defaults, from the values of --mm-processor-kwargs and --media-io-kwargs; empty text:
// no defaults. Only one of the two may choose frames.
Result<MediaSettings> read_media_defaults(const std::string& processor_kwargs,
                                          const std::string& io_kwargs);

}  // namespace valora
