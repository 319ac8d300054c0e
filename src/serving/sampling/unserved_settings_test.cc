#include "serving/sampling/generation_config.h"

#include <gtest/gtest.h>

namespace valora::serving {
namespace {

TEST(UnservedSettings, ListOnlySettingsThatChangeAnswers) {
  EXPECT_EQ(unserved_settings(Json::parse(
                R"({"no_repeat_ngram_size": 3, "num_beams": 4, "suppress_tokens": [1, 2],
                    "max_new_tokens": 64, "top_k": 5, "stop_strings": "x"})")),
            "num_beams 4, no_repeat_ngram_size 3, suppress_tokens [1,2], stop_strings \"x\", "
            "max_new_tokens 64");
  // transformers 4 writes all of them with their defaults.
  EXPECT_EQ(unserved_settings(Json::parse(
                R"({"no_repeat_ngram_size": 0, "num_beams": 1, "suppress_tokens": null,
                    "typical_p": 1.0, "guidance_scale": 1, "token_healing": false,
                    "bad_words_ids": [], "max_length": 20, "min_length": 0})")),
            "");
}

}  // namespace
}  // namespace valora::serving
