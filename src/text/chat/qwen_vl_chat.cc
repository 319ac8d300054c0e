#include "text/chat/chat_formats.h"

namespace valora::text {
namespace {

// ChatML with numbered pictures.
class QwenVlChat final : public ChatFormat {
 public:
  Result<std::string> render(const std::vector<ChatMessage>& messages,
                             bool add_generation_prompt) const override {
    std::vector<ChatMessage> numbered = messages;
    int pictures = 0;
    for (ChatMessage& message : numbered)
      for (ChatPart& part : message.parts)
        if (part.kind == ChatPart::Kind::kImage)
          part = {ChatPart::Kind::kText,
                  "Picture " + std::to_string(++pictures) + ": <img><imgpad></img>\n"};
    return chatml_->render(numbered, add_generation_prompt);
  }

 private:
  std::unique_ptr<ChatFormat> chatml_ = make_chatml();
};

}  // namespace

std::unique_ptr<ChatFormat> make_qwen_vl_chat() { return std::make_unique<QwenVlChat>(); }

}  // namespace valora::text
