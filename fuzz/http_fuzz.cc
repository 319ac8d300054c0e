// A request as a connection passes it to the handlers: method and target on the first line,
// headers, an empty line, the body. Every request must get exactly one answer with valid JSON.
#include "api/testing/fake_engine.h"
#include "base/log/log.h"
#include "check.h"
#include "server/handlers/app.h"
#include "server/testing/fake_exchange.h"

using namespace valora;

namespace {

std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return line;
}

server::HttpRequest parse(std::string_view text) {
  server::HttpRequest request;
  const std::string_view first = take_line(text);
  const size_t space = first.find(' ');
  request.method = first.substr(0, space);
  const auto path =
      server::percent_decode(space == first.npos ? std::string_view("/") : first.substr(space + 1));
  request.path = path.value_or("/");
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.empty()) break;
    const size_t colon = line.find(": ");
    if (colon == line.npos) continue;
    request.headers.emplace_back(line.substr(0, colon), line.substr(colon + 2));
  }
  request.id = server::request_id_from(request.header("x-request-id"));
  FUZZ_CHECK(!request.id.empty() && request.id.size() <= 128);
  request.body = text;
  return request;
}

// Returns tokens whose bytes are not UTF-8.
testing::Reply answer(const GenerateRequest& request) {
  testing::Reply reply{.info = {.usage = {3, 0, 0}, .prompt_token_ids = {1, 2, 3}}};
  if (request.task == Task::kClassify) {
    reply.classification =
        Classification{request.head.value_or("score"), {"a", "b"}, {0, 1}, {0.25f, 0.75f}, 1};
    return reply;
  }
  OutputChunk chunk{.text = "text", .finish = Finish{FinishReason::kStop, int32_t{7}}};
  TokenOutput token{{7, "\xE2\x82", -0.5f}, {}};
  for (int i = 0; i < request.sampling.logprobs.value_or(0); ++i) token.top.push_back({i, "t", -1});
  chunk.tokens.push_back(std::move(token));
  reply.chunks.push_back(std::move(chunk));
  return reply;
}

testing::FakeOptions engine_options() {
  testing::FakeOptions options{.script = answer, .answers_inline = true, .token_text = [](int32_t) {
                                 return std::string("\xFF");
                               }};
  options.model.name = "base";
  options.model.media_limits = {.images = 2, .videos = 1};
  return options;
}

server::ServerOptions server_options() {
  server::ServerOptions options;
  options.allow_runtime_lora_updating = true;
  options.cors_allowed_origins = {"https://a.example"};
  return options;
}

void check_answer(const server::testing::FakeExchange& exchange, const std::string& path) {
  FUZZ_CHECK(!exchange.aborted);
  const server::HttpResponse& response = exchange.response;
  FUZZ_CHECK(response.status >= 200 && response.status < 600 && response.status != 500);
  if (exchange.streaming) {
    const std::vector<Json> events = exchange.events();
    for (const Json& event : events) FUZZ_CHECK(event.is_object());
    if (exchange.stream.starts_with("event: "))  // /v1/responses, whose last event marks the end
      FUZZ_CHECK(events.back().contains("response") || events.back()["type"] == "error");
    else
      FUZZ_CHECK(exchange.stream.ends_with("data: [DONE]\n\n"));
  } else if (response.content_type == "application/json" && !response.body.empty()) {
    const Json answer = exchange.json();
    FUZZ_CHECK(answer.is_object());
    if (response.status >= 400) FUZZ_CHECK(answer.contains("error") || path == "/health");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  spdlog::set_level(spdlog::level::off);
  // A new engine per input, so that inputs do not see adapters loaded by earlier ones.
  testing::FakeEngine engine(engine_options());
  engine.add_adapter("lens");
  const auto service = std::make_shared<server::Service>(server_options(), engine);
  server::HttpRequest request = parse({reinterpret_cast<const char*>(data), size});
  const std::string path = request.path;
  server::App app(service);
  server::Headers common;
  auto exchange = std::make_shared<server::testing::FakeExchange>();
  if (auto early = app.screen(request, common))
    exchange->respond(std::move(*early));
  else
    app.handle(std::move(request), exchange);
  exchange->run();
  check_answer(*exchange, path);
  return 0;
}
