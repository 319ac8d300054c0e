#include "kernels/cpu/isa/isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace valora::kernels {
namespace {

using ::testing::HasSubstr;

constexpr Isa kOlderCpu[] = {Isa::kAvx2, Isa::kPortable};

TEST(Isa, PortableIsSupportedLast) {
  ASSERT_FALSE(supported_isas().empty());
  EXPECT_EQ(supported_isas().back(), Isa::kPortable);
}

TEST(Isa, DefaultsToBest) {
  const auto chosen = choose_isa("", kOlderCpu);
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(*chosen, Isa::kAvx2);
}

TEST(Isa, NameSelectsInstructionSet) {
  const auto chosen = choose_isa("portable", kOlderCpu);
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(*chosen, Isa::kPortable);
}

TEST(Isa, UnsupportedNameListsSupported) {
  const auto chosen = choose_isa("avx512", kOlderCpu);
  ASSERT_FALSE(chosen.ok());
  EXPECT_EQ(chosen.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(chosen.error().message,
            "VALORA_ISA=avx512: this CPU does not have it, it has avx2, portable");
}

TEST(Isa, UnknownNameListsAll) {
  const auto chosen = choose_isa("AVX2", kOlderCpu);
  ASSERT_FALSE(chosen.ok());
  EXPECT_THAT(
      chosen.error().message,
      HasSubstr("is not one of amx, avx512bf16, avx512, avxvnni, avx2, neonbf16, neon, portable"));
}

TEST(Isa, EnvironmentSelects) {
  const Isa before = isa();
  const char* set = std::getenv("VALORA_ISA");
  const std::string old = set ? set : "";

  setenv("VALORA_ISA", "portable", 1);
  ASSERT_TRUE(select_isa().ok());
  EXPECT_EQ(isa(), Isa::kPortable);
  setenv("VALORA_ISA", "mmx", 1);
  EXPECT_FALSE(select_isa().ok());
  EXPECT_EQ(isa(), Isa::kPortable) << "a refused one changes nothing";

  set ? setenv("VALORA_ISA", old.c_str(), 1) : unsetenv("VALORA_ISA");
  set_isa(before);
}

}  // namespace
}  // namespace valora::kernels
