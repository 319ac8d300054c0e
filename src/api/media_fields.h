// Reads the objects of vLLM that say how media are prepared, in requests and on command lines.
// Errors are kInvalidArgument, or kNotImplemented for a key that has no meaning here; they name the
// key and carry `field`.
#pragma once

#include <string>
#include <vector>

#include "api/media_settings.h"
#include "base/json.h"
#include "base/result.h"

namespace valora {

struct ProcessorKwargs {
  MediaSettings settings;
  std::vector<double> rates;  // a list in "fps"; settings.fps is then absent
};

// "mm_processor_kwargs": min_pixels, max_pixels, fps, do_sample_frames. null: nothing.
Result<ProcessorKwargs> read_processor_kwargs(const Json& kwargs, const std::string& field);

// "media_io_kwargs", over `settings`. null: nothing.
Status read_io_kwargs(const Json& kwargs, const std::string& field, MediaSettings& settings);

// The defaults of a server, from the texts of --mm-processor-kwargs and --media-io-kwargs; an empty
// one has none. They may not choose frames both.
Result<MediaSettings> read_media_defaults(const std::string& processor_kwargs,
                                          const std::string& io_kwargs);

}  // namespace valora
