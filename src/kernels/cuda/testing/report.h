// Counts and prints the results of a group of cases. Of many failures the first ones are printed.
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/testing/values.h"

namespace valora::kernels::cuda {

// What an element must be. size: of the terms of its sum, to which the errors within a kernel are
// relative. A NaN value is poison that must still be there.
struct Expected {
  double value = 0, size = 0;
};

// Which cases run.
struct Selection {
  double most_work =
      1e300;              // of a fixed case, in multiply-adds or elements: larger ones are left out
  int random_cases = 40;  // of each kernel and dtype
  uint64_t seed = 1;      // of the random ones
};

class Group {
 public:
  explicit Group(std::string name, const Selection& selection = {})
      : name_(std::move(name)), selection_(selection) {}
  const Selection& selection() const { return selection_; }
  // Whether a case of this much work runs; counts those that do not.
  bool takes(double work);
  // Allows one rounding to the dtype, and inner · size. Prints a line if an element is beyond it.
  void check(const std::string& name, const std::vector<Expected>& expected,
             const DeviceValues& values, Dtype dtype, double inner);
  // All elements must be equal; NaN equals NaN.
  void check_same(const std::string& name, const std::vector<float>& expected,
                  const DeviceValues& values);
  // A case that has no elements to compare.
  void check(const std::string& name, bool passed, const std::string& why);
  // After the launches of a case: reports a refused launch or a fault. A fault ends the program,
  // since the device is lost.
  bool launched(const std::string& name, int status);
  // Prints the counts; → whether all passed.
  bool finish() const;

 private:
  void fail(const std::string& name, const std::string& why);

  std::string name_;
  Selection selection_;
  int passed_ = 0, failed_ = 0, left_out_ = 0;
  double worst_ = 0;  // error / allowed error, of all cases that passed
};

}  // namespace valora::kernels::cuda
