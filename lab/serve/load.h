// The load that a benchmark generates for an OpenAI server.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace valora::bench {

// An inclusive range.
struct Range {
  int min = 0, max = 0;
};

enum class ImageFormat { kJpeg, kPng };

struct ImageLoad {
  int count = 0;  // images per request
  int width = 224, height = 224;
  ImageFormat format = ImageFormat::kJpeg;
  bool repeat = false;  // every request sends the same images
};

struct ServeLoad {
  std::string url = "http://127.0.0.1:8000";
  std::string api_key;
  // empty: all adapters that the server lists, or its base model if there are none
  std::vector<std::string> models;
  std::string distribution = "uniform";  // of requests over models, see model_mix.h
  int requests = 64;
  int warmup = 0;       // uncounted requests before the run
  int concurrency = 8;  // concurrent requests; 0: unlimited (open loop)
  // requests per second, as a Poisson process; 0: closed loop, where a request is sent as soon as
  // another ends
  double request_rate = 0;
  Range input_tokens{128, 128};
  Range output_tokens{64, 64};
  ImageLoad images;
  bool stream = true;
  int timeout_seconds = 600;  // per request
  uint64_t seed = 0;
};

}  // namespace valora::bench
