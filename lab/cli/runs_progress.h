// A progress bar over several runs, each with a known number of requests.
#pragma once

#include <algorithm>
#include <functional>
#include <string>

#include "cli/progress/progress_bar.h"

namespace valora::cli {

// Overall progress, in thousandths of a run.
class RunsProgress {
 public:
  explicit RunsProgress(size_t runs) : runs_(runs) {}

  std::function<void(size_t)> begin(const std::string& name, size_t requests) {
    const size_t before = kParts * begun_++;
    show(before, name);
    return [this, before, name, requests](size_t ended) {
      show(before + kParts * ended / std::max<size_t>(1, requests), name);
    };
  }

 private:
  static constexpr size_t kParts = 1000;
  void show(size_t parts, const std::string& name) {
    bar_.show(static_cast<int64_t>(parts), static_cast<int64_t>(kParts * runs_), name);
  }

  ProgressBar bar_;
  const size_t runs_;
  size_t begun_ = 0;
};

}  // namespace valora::cli
