// For tests that run with every instruction set of this CPU.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "kernels/cpu/isa/isa.h"

namespace valora::kernels::testing_support {

class OnEachIsa : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override { set_isa(GetParam()); }
  void TearDown() override { set_isa(before_); }

 private:
  const Isa before_ = isa();
};

inline auto each_isa() {
  return ::testing::ValuesIn(supported_isas().begin(), supported_isas().end());
}
inline std::string name_of_isa(const ::testing::TestParamInfo<Isa>& info) {
  return std::string(isa_name(info.param));
}

}  // namespace valora::kernels::testing_support
