// Requests and tokens by the adapter that answered.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "api/answer.h"
#include "api/request.h"

namespace valora::server {

// Thread-safe.
class AdapterCounts {
 public:
  // Beyond so many names, those that were used longest ago are forgotten.
  static constexpr size_t kMostNames = 65536;

  struct Counts {
    uint64_t requests = 0, prompt_tokens = 0, generated_tokens = 0;
    int64_t last_used = 0;  // Unix time; 0: never
  };

  // An answered request counts for each of its adapters; for "", the base model, if it has none.
  void answered(const std::vector<AdapterUse>& uses, const Usage& usage);
  // By name.
  std::map<std::string, Counts> all() const;

 private:
  void make_room();

  mutable std::mutex mutex_;
  std::map<std::string, Counts> counts_;
};

}  // namespace valora::server
