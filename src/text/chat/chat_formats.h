// Built-in formats for families whose folders have no chat template. ChatML is in chat.h.
#pragma once

#include <memory>

#include "text/chat/chat.h"

namespace valora::text {

// Llama 2: [INST] … [/INST] with the system prompt inside the first user turn. Turns must alternate
// user and assistant. Text only.
std::unique_ptr<ChatFormat> make_llama2_chat();
// Llama 3: <|start_header_id|>role<|end_header_id|> … <|eot_id|>. Text only.
std::unique_ptr<ChatFormat> make_llama3_chat();
// Qwen3: ChatML without a default system prompt. Answers before the last question are stripped of
// their thoughts, up to </think>; later answers have a <think> block, as in the published template.
// opening: the start of the assistant's turn, such as a thought. With the variable enable_thinking
// false, it is an empty thought.
std::unique_ptr<ChatFormat> make_qwen3_chat(std::string opening = {});

// The first Qwen-VL: ChatML with "Picture 1: <img><imgpad></img>" and a line break for each
// picture, numbered throughout the conversation.
std::unique_ptr<ChatFormat> make_qwen_vl_chat();

enum class MistralChat {
  kText,          // [INST] is text, as in 7B-Instruct v0.1 and v0.2
  kTokens,        // [INST] is a token, in a SentencePiece vocabulary, as in v0.3
  kTekken,        // [INST] is a token, in a Tekken vocabulary
  kTekkenSystem,  // as kTekken, but with special tokens around the system prompt
};
// Mistral: [INST] … [/INST] with the system prompt inside a user turn: the first with kText,
// otherwise the last. Turns must alternate user and assistant. image: a picture's placeholder.
std::unique_ptr<ChatFormat> make_mistral_chat(MistralChat kind, std::string image = {});
// LLaVA-1.5: "USER: <image>\ntext ASSISTANT:". A turn's images come before its text.
std::unique_ptr<ChatFormat> make_llava_chat();
// Idefics3 and SmolVLM: "User: text<end_of_utterance>\nAssistant:"; a turn that begins with an
// image has no space before it. opens: write <|im_start|> before the conversation, as for SmolVLM.
std::unique_ptr<ChatFormat> make_idefics3_chat(bool opens);

// Gemma 3: <start_of_turn>user\n … <end_of_turn>. A system message becomes the beginning of the
// first user turn. Turns must alternate user and assistant.
std::unique_ptr<ChatFormat> make_gemma_chat();

}  // namespace valora::text
