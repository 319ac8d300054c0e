// A load on an OpenAI server: what is asked, how often, and of which models.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace valora::bench {

// Both ends included.
struct Range {
  int min = 0, max = 0;
};

enum class ImageFormat { kJpeg, kPng };

struct ImageLoad {
  int count = 0;  // a request
  int width = 224, height = 224;
  ImageFormat format = ImageFormat::kJpeg;
  bool repeat = false;  // every request brings the same ones
};

struct ServeLoad {
  std::string url = "http://127.0.0.1:8000";
  std::string api_key;
  std::vector<std::string> models;  // empty: all adapters that the server lists, or its base model
  std::string distribution = "uniform";  // of the requests over the models, see model_mix.h
  int requests = 64;
  int warmup = 0;           // requests before, which are not counted
  int concurrency = 8;      // requests under way; 0: any number (open loop)
  double request_rate = 0;  // a second, as a Poisson process; 0: the next as soon as one has ended
  Range input_tokens{128, 128};
  Range output_tokens{64, 64};
  ImageLoad images;
  bool stream = true;
  int timeout_seconds = 600;  // of a request
  uint64_t seed = 0;
};

}  // namespace valora::bench
