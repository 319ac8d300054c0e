// Built-in formats of families whose folders have no chat template. ChatML is in chat.h.
#pragma once

#include <memory>

#include "text/chat.h"

namespace valora::text {

// Llama 2: [INST] … [/INST] with the system prompt inside the first user turn. Turns must alternate
// user and assistant. Text only.
std::unique_ptr<ChatFormat> make_llama2_chat();
// Llama 3: <|start_header_id|>role<|end_header_id|> … <|eot_id|>. Text only.
std::unique_ptr<ChatFormat> make_llama3_chat();
// Qwen3: ChatML without a default system prompt. Of an answer before the last question, the thought
// up to </think> is left out; later answers have a <think> block, as the published template writes
// them. opening: what the assistant's turn begins with, such as a thought.
std::unique_ptr<ChatFormat> make_qwen3_chat(std::string opening = {});

// Qwen-VL, the first one: ChatML with "Picture 1: <img><imgpad></img>" and a line break for each
// picture, numbered through the conversation.
std::unique_ptr<ChatFormat> make_qwen_vl_chat();

enum class MistralChat {
  kText,          // [INST] is text, as in 7B-Instruct v0.1 and v0.2
  kTokens,        // [INST] is a token, in a SentencePiece vocabulary, as in v0.3
  kTekken,        // [INST] is a token, in a Tekken vocabulary
  kTekkenSystem,  // and the system prompt has tokens of its own
};
// Mistral: [INST] … [/INST] with the system prompt inside a user turn: the first with kText, else
// the last. Turns must alternate user and assistant. image: what stands for a picture.
std::unique_ptr<ChatFormat> make_mistral_chat(MistralChat kind, std::string image = {});
// LLaVA-1.5: "USER: <image>\ntext ASSISTANT:". A turn's images come before its text.
std::unique_ptr<ChatFormat> make_llava_chat();
// Idefics3 and SmolVLM: "User: text<end_of_utterance>\nAssistant:", without the space in a turn
// that begins with an image. opens: with <|im_start|> before the conversation, as SmolVLM's has.
std::unique_ptr<ChatFormat> make_idefics3_chat(bool opens);

// Gemma 3: <start_of_turn>user\n … <end_of_turn>. A system message is the first user turn's
// beginning. Turns must alternate user and assistant.
std::unique_ptr<ChatFormat> make_gemma_chat();

}  // namespace valora::text
