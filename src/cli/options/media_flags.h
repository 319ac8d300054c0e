// Options of commands for media: the number per prompt, in vLLM's forms, and settings for media
// without their own.
#pragma once

#include <string>

#include "api/media_limits.h"
#include "api/options.h"
#include "base/result.h"
#include "cli/command.h"

namespace valora::cli {

// The options' values: read_media_limits() and read_media_defaults() read them.
struct MediaFlags {
  std::string limits, processor, io;
};

// --limit-mm-per-prompt
void add_media_limits(Command command, MediaFlags& flags);
// --mm-processor-kwargs and --media-io-kwargs
void add_media_defaults(Command command, MediaFlags& flags);

Status apply_media(const MediaFlags& flags, EngineOptions& options);

// Reads {"image": N, "video": M}, the older image=N,video=M, or the newer {"image": {"count": N}},
// over `limits`. kInvalidArgument for anything else, and for audio above 0.
Result<MediaLimits> read_media_limits(const std::string& text, MediaLimits limits);

}  // namespace valora::cli
