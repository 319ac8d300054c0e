// Counts and prints the results of a group of cases. Prints only the first few failures.
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/testing/values.h"

namespace valora::kernels::cuda {

// The required value of an element. size: magnitude of the terms of its sum, to which errors within
// a kernel are relative. A NaN value means poison that must be intact.
struct Expected {
  double value = 0, size = 0;
};

// Which cases run.
struct Selection {
  // Leaves out fixed cases with more work, in multiply-adds or elements.
  double most_work = 1e300;
  int random_cases = 40;  // per kernel and dtype
  uint64_t seed = 1;      // for the random cases
};

class Group {
 public:
  explicit Group(std::string name, const Selection& selection = {})
      : name_(std::move(name)), selection_(selection) {}
  const Selection& selection() const { return selection_; }
  // True if a case with this much work runs; counts the cases that do not.
  bool takes(double work);
  // Allows one rounding to the dtype plus inner · size. Prints a line if an element exceeds that.
  void check(const std::string& name, const std::vector<Expected>& expected,
             const DeviceValues& values, Dtype dtype, double inner);
  // All elements must be equal; NaN equals NaN.
  void check_same(const std::string& name, const std::vector<float>& expected,
                  const DeviceValues& values);
  // For a case that has no elements to compare.
  void check(const std::string& name, bool passed, const std::string& why);
  // Call after a case's launches: reports a refused launch or a fault. A fault ends the program,
  // because the device is lost.
  bool launched(const std::string& name, int status);
  // Prints the counts; → true if all cases passed.
  bool finish() const;

 private:
  void fail(const std::string& name, const std::string& why);

  std::string name_;
  Selection selection_;
  int passed_ = 0, failed_ = 0, left_out_ = 0;
  double worst_ = 0;  // worst error-to-tolerance ratio among the cases that passed
};

}  // namespace valora::kernels::cuda
