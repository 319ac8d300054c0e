#include "server/handlers/generation/generation.h"

#include <fmt/format.h>

#include <ctime>
#include <mutex>
#include <optional>
#include <utility>

#include "server/http/inner_exchange.h"
#include "server/openai/errors.h"
#include "server/openai/sse.h"

namespace valora::server {
namespace {

// Adds all numbers of an answer's "usage" to those of `sum`.
void add_usage(OrderedJson& sum, const OrderedJson& usage) {
  if (!sum.is_object()) sum = OrderedJson::object();
  for (const auto& [key, value] : usage.items()) {
    if (value.is_number_integer())
      sum[key] = sum.value(key, int64_t{0}) + value.get<int64_t>();
    else if (value.is_object())
      add_usage(sum[key], value);
  }
}

// The answers of a request's skills. Thread-safe: an answer may come while later skills are
// still being asked.
class SkillAnswers : public std::enable_shared_from_this<SkillAnswers> {
 public:
  SkillAnswers(std::shared_ptr<Exchange> exchange, AnswerHead head,
               const std::vector<Skill>& skills, bool stream)
      : exchange_(std::move(exchange)), head_(std::move(head)), stream_(stream) {
    for (const Skill& skill : skills) parts_.push_back({.name = skill.name});
    unfinished_ = parts_.size();
  }

  // The exchange over which a skill is answered.
  std::shared_ptr<Exchange> exchange_of(size_t index) {
    auto inner = std::make_shared<InnerExchange>(
        [to = exchange_](std::function<void()> work) { to->post(std::move(work)); },
        [self = shared_from_this(), index](std::optional<HttpResponse> answer) {
          self->take(index, answer ? std::move(*answer)
                                   : error_response(503,
                                                    "the answer of this skill was lost; "
                                                    "try again"));
        });
    const std::lock_guard lock(mutex_);
    parts_[index].exchange = inner;
    return inner;
  }

  void leave() {
    std::vector<std::shared_ptr<InnerExchange>> asked;
    {
      const std::lock_guard lock(mutex_);
      for (const Part& part : parts_)
        if (auto exchange = part.exchange.lock()) asked.push_back(std::move(exchange));
    }
    for (const auto& exchange : asked) exchange->client_left();
  }

 private:
  struct Part {
    std::string name;
    std::weak_ptr<InnerExchange> exchange;
    std::optional<HttpResponse> answer;
  };

  OrderedJson head(const char* object) const {
    return {
        {"id", head_.id}, {"object", object}, {"created", head_.created}, {"model", head_.model}};
  }

  void take(size_t index, HttpResponse answer) {
    const std::lock_guard lock(mutex_);
    Part& part = parts_[index];
    part.answer = std::move(answer);
    any_ok_ |= part.answer->status == 200;
    if (stream_) send(part);
    if (--unfinished_ == 0) finish();
  }

  // Takes the answer's text away, which may be long.
  OrderedJson answer_of(Part& part) {
    OrderedJson answer = OrderedJson::parse(std::exchange(part.answer->body, {}));
    if (answer.contains("usage")) add_usage(usage_, answer["usage"]);
    return answer;
  }

  void send(Part& part) {
    if (!std::exchange(begun_, true)) exchange_->begin_stream(event_stream());
    OrderedJson event = head("chat.completion.skill");
    event["skill"] = part.name;
    event["answer"] = answer_of(part);
    exchange_->write(sse_event(to_text(event)));
  }

  void finish() {
    OrderedJson out = head("chat.completion.skills");
    if (stream_) {
      out["usage"] = usage_;
      exchange_->write(sse_event(to_text(out)) + std::string(kSseDone));
      return exchange_->end_stream();
    }
    // The fault of all is the request's.
    if (!any_ok_) return exchange_->respond(std::move(*parts_.front().answer));
    OrderedJson& skills = out["skills"] = OrderedJson::object();
    for (Part& part : parts_) skills[part.name] = answer_of(part);
    out["usage"] = usage_;
    exchange_->respond({.body = to_text(out)});
  }

  const std::shared_ptr<Exchange> exchange_;
  const AnswerHead head_;
  const bool stream_;
  std::mutex mutex_;
  std::vector<Part> parts_;
  size_t unfinished_;
  bool begun_ = false, any_ok_ = false;
  OrderedJson usage_ = OrderedJson::object();
};

// The question that the skill's model was trained with; nullopt: it has none.
Result<std::optional<std::string>> question_of(const Service& service, const Skill& skill) {
  const auto& conversation = std::get<ChatPrompt>(skill.body.prompts.front());
  if (skill.question || has_question(conversation)) return skill.question;
  const auto adapter =
      service.engine.adapter(std::string(service.adapter_of(skill.body.target.model)));
  if (!adapter && !service.is_base(skill.body.target.model) &&
      service.options.lora_resolver_dir.empty())
    return model_not_found(skill.body.target.model);
  if (!adapter || adapter->question.empty()) return std::optional<std::string>();
  if (adapter->question.find("{label}") != std::string::npos)
    return invalid("the question of \"" + skill.name +
                       "\" has a place for the name of an object; send \"question\"",
                   "skills");
  return std::optional(adapter->question);
}

Status complete(const Service& service, Skill& skill) {
  VALORA_TRY(question, question_of(service, skill));
  return ask_question(std::get<ChatPrompt>(skill.body.prompts.front()), question);
}

}  // namespace

void answer_skills(const std::shared_ptr<Service>& service, const HttpRequest& request,
                   std::shared_ptr<Exchange> exchange, SkillsBody body) {
  if (!body.model.empty() && !service->is_base(body.model))
    return exchange->respond(error_response(invalid(
        "with \"skills\", \"model\" must be a name of the base model, or absent", "model")));
  const auto answers = std::make_shared<SkillAnswers>(
      exchange, AnswerHead{"chatcmpl-" + request.id, std::time(nullptr), service->base_name()},
      body.skills, body.stream);
  exchange->on_disconnect([weak = std::weak_ptr(answers)] {
    if (const auto alive = weak.lock()) alive->leave();
  });
  HttpRequest asked = request;
  asked.body.clear();
  for (size_t i = 0; i < body.skills.size(); ++i) {
    Skill& skill = body.skills[i];
    asked.id = fmt::format("{}-{}", request.id, i);
    const Status completed = complete(*service, skill);
    Result<GenerationBody> chat = std::move(skill.body);
    if (!completed.ok()) chat = completed.error();
    answer_chat(service, asked, answers->exchange_of(i), std::move(chat));
  }
  exchange->release_body();
}

void handle_analyze(const std::shared_ptr<Service>& service, HttpRequest request,
                    std::shared_ptr<Exchange> exchange) {
  auto body = parse_analyze(request.body, service->request_limits(request));
  if (!body.ok()) return exchange->respond(error_response(body.error()));
  answer_skills(service, request, std::move(exchange), std::move(*body));
}

}  // namespace valora::server
