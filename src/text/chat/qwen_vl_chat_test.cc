#include <gtest/gtest.h>

#include "text/chat/chat_formats.h"
#include "text/testing/chat_parts.h"

namespace valora::text {
namespace {

using testing::image;
using testing::text;

TEST(QwenVlChat, NumbersPicturesThroughTheConversation) {
  const std::vector<ChatMessage> messages{{"user", {image(), image(), text("differ?")}},
                                          {"assistant", {text("Yes")}},
                                          {"user", {image(), text("and this?")}}};
  EXPECT_EQ(make_qwen_vl_chat()->render(messages, true).value(),
            "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
            "<|im_start|>user\nPicture 1: <img><imgpad></img>\nPicture 2: <img><imgpad></img>\n"
            "differ?<|im_end|>\n<|im_start|>assistant\nYes<|im_end|>\n"
            "<|im_start|>user\nPicture 3: <img><imgpad></img>\nand this?<|im_end|>\n"
            "<|im_start|>assistant\n");
}

}  // namespace
}  // namespace valora::text
