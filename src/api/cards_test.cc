#include "api/cards.h"

#include <gtest/gtest.h>

namespace valora {
namespace {

TEST(Cards, ChangedPartsAreSaidInOneLine) {
  const ChangedPart decoder{
      .name = "decoder", .linears = 14, .of = 35, .ranks = {4, 16}, .scales = {2}};
  const ChangedPart vision{.name = "vision", .linears = 0, .of = 9};
  EXPECT_EQ(text_of({decoder, vision}),
            "decoder: 14 of 35 linears, rank 4 and 16, scale 2; vision: 0 of 9 linears");
  EXPECT_EQ(text_of({}), "");
}

}  // namespace
}  // namespace valora
