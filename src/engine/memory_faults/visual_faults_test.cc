// Failed allocations during requests with pictures, on a tiny Qwen2-VL.
#include "base/text/base64.h"
#include "engine/memory_faults/faults_fixture.h"
#include "media/testing/pictures.h"
#include "models/testing/tiny_towers.h"

namespace valora {
namespace {

using namespace testing;
namespace towers = models::testing;

class VisualFaults : public EngineFaults {
 protected:
  VisualFaults() {
    towers::TinyTower model = towers::qwen2_vl();
    model.tensors.add("model.language_model.embed_tokens.weight", {kVocab, towers::kOut});
    model.tensors.add("lm_head.weight", {kVocab, towers::kOut});
    model.config["vocab_size"] = kVocab;
    model.config["max_position_embeddings"] = 512;
    model.config["eos_token_id"] = 260;
    model.config["image_token_id"] = 261;
    model.config["video_token_id"] = 262;
    Json tokenizer = text::tiny_tokenizer_json();
    for (const auto& [id, name] :
         {std::pair(261, "<|image_pad|>"), {262, "<|video_pad|>"}, {263, "<|vision_start|>"}})
      tokenizer["added_tokens"].push_back(text::added_token_json(id, name, true));
    model_.write("config.json", model.config.dump());
    model_.write("tokenizer.json", tokenizer.dump());
    model_.write("model.safetensors", model.tensors.text());
    model_.write("preprocessor_config.json", Json{{"patch_size", towers::kPatch},
                                                  {"temporal_patch_size", 2},
                                                  {"merge_size", 2},
                                                  {"min_pixels", 16},
                                                  {"max_pixels", 4096}}
                                                 .dump());
    model_.write("chat_template.jinja",
                 "{% for message in messages %}<|im_start|>{{ message.role }}"
                 "{% for part in message.content %}{% if part.type == 'image' %}"
                 "<|vision_start|><|image_pad|>{% else %}{{ part.text }}{% endif %}{% endfor %}"
                 "{% endfor %}");
    // Media must be prepared and encoded each time.
    options_.media_cache_bytes = options_.visual_cache_bytes = 0;
    options_.memory.pool_bytes = 1 << 20;
  }

  static GenerateRequest look(int seed) {
    const media::Bytes png =
        media::testing::encode_png(media::testing::make_picture(16, 12 + 4 * seed, seed));
    const std::string_view bytes(reinterpret_cast<const char*>(png.data()), png.size());
    ChatPrompt chat;
    chat.messages.push_back(
        {"user",
         {MediaRef{MediaRef::Kind::kImage, "data:image/png;base64," + encode_base64(bytes)},
          std::string("see")}});
    return ask(chat, 3);
  }
};

TEST_F(VisualFaults, PicturesSurviveFailedAllocations) {
  start();
  fail_each([](uint64_t) {
    return std::vector<GenerateRequest>{look(1), look(2), ask(numbered_prompt(18, 5), 3)};
  });
}

}  // namespace
}  // namespace valora
