#include "kernels/cuda/testing/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace valora::kernels::cuda {
namespace {

constexpr int kMostPrinted = 12;  // failures per group
constexpr char kOutside[] = "wrote outside of the result";

template <typename... Values>
std::string text(const char* format, Values... values) {
  char buffer[512];
  std::snprintf(buffer, sizeof buffer, format, values...);
  return buffer;
}

}  // namespace

void Group::fail(const std::string& name, const std::string& why) {
  if (++failed_ <= kMostPrinted)
    std::printf("FAIL %s / %s: %s\n", name_.c_str(), name.c_str(), why.c_str());
}

bool Group::takes(double work) {
  const bool taken = work <= selection_.most_work;
  left_out_ += taken ? 0 : 1;
  return taken;
}

void Group::check(const std::string& name, const std::vector<Expected>& expected,
                  const DeviceValues& values, Dtype dtype, double inner) {
  const std::vector<float> got = values.get();
  const double tiny = dtype == Dtype::kFp16 ? 1.05 * std::ldexp(1.0, -25) : 1e-37;
  size_t wrong = 0, first = 0, worst = 0;
  double worst_ratio = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const Expected& e = expected[i];
    double ratio;
    if (std::isnan(e.value)) {
      ratio = std::isnan(got[i]) ? 0 : HUGE_VAL;
    } else {
      const double allowed =
          1.02 * unit_roundoff(dtype) * std::abs(e.value) + inner * e.size + tiny;
      ratio = std::abs(got[i] - e.value) / allowed;
      if (std::isnan(ratio)) ratio = HUGE_VAL;
    }
    if (ratio > 1 && wrong++ == 0) first = i;
    if (ratio > worst_ratio) worst_ratio = ratio, worst = i;
  }
  if (!values.memory().guards_intact()) return fail(name, kOutside);
  if (wrong > 0)
    return fail(name,
                text("%zu of %zu elements; first [%zu] got %.9g expected %.9g; worst [%zu] got "
                     "%.9g expected %.9g, %.3g times the allowed error",
                     wrong, expected.size(), first, got[first], expected[first].value, worst,
                     got[worst], expected[worst].value, worst_ratio));
  ++passed_;
  worst_ = std::max(worst_, worst_ratio);
}

void Group::check_same(const std::string& name, const std::vector<float>& expected,
                       const DeviceValues& values) {
  const std::vector<float> got = values.get();
  size_t wrong = 0, first = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const bool same = got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i]));
    if (!same && wrong++ == 0) first = i;
  }
  if (wrong > 0)
    return fail(name, text("%zu of %zu elements; first [%zu] got %.9g expected %.9g", wrong,
                           expected.size(), first, got[first], expected[first]));
  check(name, values.memory().guards_intact(), kOutside);
}

void Group::check(const std::string& name, bool passed, const std::string& why) {
  if (!passed) return fail(name, why);
  ++passed_;
}

bool Group::launched(const std::string& name, int status) {
  if (status != cudaSuccess) {
    fail(name, std::string("launch: ") + cudaGetErrorString(static_cast<cudaError_t>(status)));
    (void)cudaGetLastError();
    return false;
  }
  const std::string what = name_ + " / " + name;
  require(cudaDeviceSynchronize(), what.c_str());
  return true;
}

bool Group::finish() const {
  std::printf("%-28s %d passed, %d failed (worst error %.2f of the allowed)", name_.c_str(),
              passed_, failed_, worst_);
  if (left_out_ > 0) std::printf(", %d larger cases left out", left_out_);
  std::printf("\n");
  std::fflush(stdout);
  return failed_ == 0;
}

}  // namespace valora::kernels::cuda
