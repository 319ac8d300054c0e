#include "adapters/tensors/value_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "adapters/testing/adapter_folder.h"

namespace valora::adapters {
namespace {

using testing::AdapterFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kHidden;
using testing::kQ0;
using testing::kQ1;

constexpr const char* kA = "lora_A.weight";
constexpr const char* kB = "lora_B.weight";

void zero(AdapterFolder& folder, const std::string& module, const std::string& parameter) {
  std::string& bytes = folder.tensors.at(AdapterFolder::key(module, parameter)).bytes;
  bytes.assign(bytes.size(), '\0');
}

std::vector<std::string> warnings(const AdapterFolder& folder) {
  const auto spec = folder.read();
  return spec.ok() ? spec->warnings : std::vector{spec.error().message};
}

TEST(ValueWarnings, TrainedAdaptersGetNone) { EXPECT_THAT(warnings({}), ElementsAre()); }

// A copy into a file of full size, of which the end was not written yet.
TEST(ValueWarnings, NameTheFirstLoraAOfZeros) {
  AdapterFolder folder;
  zero(folder, kQ1, kA);
  zero(folder, kQ1, kB);
  EXPECT_THAT(warnings(folder), ElementsAre(HasSubstr("tensor \"" + AdapterFolder::key(kQ1, kA) +
                                                      "\" is all zeros")));
  EXPECT_THAT(warnings(folder)[0], HasSubstr("the file may be incomplete"));
  zero(folder, kQ0, kA);
  EXPECT_THAT(warnings(folder),
              ElementsAre(HasSubstr(AdapterFolder::key(kQ0, kA) + "\" and 1 more are all zeros"),
                          HasSubstr("each of them has a factor that is all zeros")));
}

TEST(ValueWarnings, DeadAdaptersAreNamedAsSuch) {
  AdapterFolder alpha;
  alpha.config["lora_alpha"] = 0;
  const auto dead = ElementsAre(
      HasSubstr("change nothing: lora_alpha is 0; the adapter answers as the base model does"));
  EXPECT_THAT(warnings(alpha), dead);
  EXPECT_THAT(alpha.read_headers()->warnings, dead);
  AdapterFolder untrained;
  for (const char* module : {kQ0, kQ1}) zero(untrained, module, kB);
  EXPECT_THAT(warnings(untrained), ElementsAre(HasSubstr("every lora_B is all zeros")));
  // Values that were not read may be anything.
  EXPECT_THAT(untrained.read_headers()->warnings, ElementsAre());
}

TEST(ValueWarnings, PartsOfAnAdapterMayBeZero) {
  AdapterFolder folder;
  zero(folder, kQ0, kB);
  folder.config["alpha_pattern"] = {{"layers.0.self_attn.q_proj", 0}};
  EXPECT_THAT(warnings(folder), ElementsAre());
}

TEST(ValueWarnings, HeadsOfDeadProductsStillAnswer) {
  AdapterFolder folder;
  folder.config["lora_alpha"] = 0;
  folder.add_head("score", 2);
  EXPECT_THAT(warnings(folder), ElementsAre(HasSubstr("change nothing: lora_alpha is 0")));
  EXPECT_THAT(warnings(folder)[0], ::testing::Not(HasSubstr("base model")));
}

}  // namespace
}  // namespace valora::adapters
