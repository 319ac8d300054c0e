// Looks for tool calls in a model's answer. The first byte gives the style and whether parallel
// calls are allowed, the second the length of the pieces.
#include <string>
#include <vector>

#include "check.h"
#include "input.h"
#include "server/tools/call_parser.h"

using namespace valora;
using namespace valora::server;

namespace {

struct Sum {
  std::string content;
  std::vector<std::string> calls;
  bool operator==(const Sum&) const = default;
};

void add(Sum& sum, const AnswerDelta& delta) {
  sum.content += delta.content;
  for (const CallDelta& call : delta.calls) {
    FUZZ_CHECK(static_cast<size_t>(call.index) == sum.calls.size() - (call.name ? 0 : 1));
    if (call.name) sum.calls.push_back(*call.name + ":");
    sum.calls.back() += call.arguments;
  }
}

Sum parse(ToolCallStyle style, const ToolRequest& tools, std::string_view text, size_t piece) {
  const auto parser = make_call_parser(style, tools);
  Sum sum;
  for (size_t at = 0; at < text.size(); at += piece) add(sum, parser->feed(text.substr(at, piece)));
  add(sum, parser->finish());
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const uint8_t kind = input.byte();
  const size_t piece = input.byte() % 16 + 1;
  const std::string_view text = input.rest();
  ToolRequest tools;
  tools.choice = ToolChoice::kAuto;
  tools.callable = {{.name = "f"}, {.name = "look"}};
  tools.parallel = kind / 3 % 2 == 0;
  const ToolCallStyle style = kToolCallStyles[kind % 3].second;
  const Sum whole = parse(style, tools, text, text.size() + 1);
  FUZZ_CHECK(whole == parse(style, tools, text, piece));
  FUZZ_CHECK(tools.parallel || whole.calls.size() <= 1);
  if (whole.calls.empty()) FUZZ_CHECK(whole.content == text);
  return 0;
}
