// Runs a folder's tokenizer and chat format, for comparison with other implementations. Usage:
// text_probe DIR. One JSON object per line on stdin, one answer per line on stdout:
//   {"text", "add_special_tokens"}     → {"ids", "decoded", "streamed"}
//   {"ids", "skip_special_tokens"}     → {"decoded", "streamed"}
//   {"messages", "add_generation_prompt", "default_system"}
//                                      → {"rendered"}; content as OpenAI's parts
// Errors: {"error": …}.
#include <iostream>

#include "base/json/json.h"
#include "base/log/log.h"
#include "chat_parts.h"
#include "text/chat/chat.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace valora::text {
namespace {

using TokenizerPtr = std::shared_ptr<const Tokenizer>;

Json decode_both_ways(const TokenizerPtr& tokenizer, const std::vector<int32_t>& ids,
                      bool skip_special_tokens) {
  Detokenizer detokenizer(tokenizer, skip_special_tokens);
  std::string streamed;
  for (const int32_t id : ids) streamed += detokenizer.push(id);
  streamed += detokenizer.flush();
  return {{"decoded", tokenizer->decode(ids, skip_special_tokens)}, {"streamed", streamed}};
}

Json render(const Json& request) {
  std::vector<ChatMessage> messages;
  for (const Json& message : request.at("messages"))
    messages.push_back({message.at("role").get<std::string>(), read_parts(message.at("content"))});
  const auto format = request.contains("default_system")
                          ? make_chatml(request.at("default_system").get<std::string>())
                          : make_chatml();
  const auto rendered = format->render(messages, request.value("add_generation_prompt", false));
  return rendered.ok() ? Json{{"rendered", *rendered}} : Json{{"error", rendered.error().message}};
}

Json answer(const TokenizerPtr& tokenizer, const Json& request) {
  if (request.contains("messages")) return render(request);
  const bool skip = request.value("skip_special_tokens", false);
  if (request.contains("ids"))
    return decode_both_ways(tokenizer, request.at("ids").get<std::vector<int32_t>>(), skip);
  const std::string text = request.at("text");
  const std::vector<int32_t> ids =
      tokenizer->encode(text, request.value("add_special_tokens", true));
  Json result = decode_both_ways(tokenizer, ids, skip);
  result["ids"] = ids;
  return result;
}

int run(const std::string& dir) {
  const auto tokenizer = Tokenizer::load(dir);
  if (!tokenizer.ok()) {
    std::cerr << tokenizer.error().message << "\n";
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const auto request = parse_json(line, "the line");
    std::cout << (request.ok() ? answer(*tokenizer, *request)
                               : Json{{"error", request.error().message}})
              << "\n";
  }
  return 0;
}

}  // namespace
}  // namespace valora::text

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: text_probe DIR < requests.jsonl\n";
    return 2;
  }
  valora::set_up_logging("warning");
  try {
    return valora::text::run(argv[1]);
  } catch (const std::exception& e) {
    std::cerr << "text_probe: " << e.what() << "\n";
    return 1;
  }
}
