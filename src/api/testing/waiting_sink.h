// A sink that tests can wait on. It stores the answer and checks the rules of ResponseSink on each
// call.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/answer.h"

namespace valora::testing {

struct Answer {
  struct Choice {
    std::string text, thought;
    int thought_tokens = 0;
    std::vector<int32_t> tokens;
    std::vector<float> logprobs;  // of these tokens
    std::optional<Finish> finish;
  };
  std::map<int, Choice> choices;
  std::optional<Classification> classification;
  std::optional<Usage> started;
  std::vector<int32_t> prompt;  // from on_start
  std::optional<FinalInfo> done;
  std::optional<Error> error;
  const Choice& first() const { return choices.at(0); }
};

class WaitingSink final : public ResponseSink {
 public:
  // on_token: called on the engine thread with the number of tokens so far.
  explicit WaitingSink(std::function<void(int)> on_token = {}) : on_token_(std::move(on_token)) {}

  void on_start(const Usage& usage, const PromptTokens& prompt) override {
    change([&] {
      EXPECT_FALSE(answer_.started);
      answer_.started = usage;
      answer_.prompt = *prompt;
    });
  }
  void on_output(OutputChunk chunk) override {
    int tokens = 0;
    change([&] {
      Answer::Choice& choice = answer_.choices[chunk.index];
      EXPECT_FALSE(choice.finish) << "output after the end";
      EXPECT_TRUE(chunk.thought.empty() || choice.text.empty()) << "a thought after the answer";
      choice.text += chunk.text;
      choice.thought += chunk.thought;
      choice.thought_tokens += chunk.thought_tokens;
      for (const TokenOutput& token : chunk.tokens) {
        choice.tokens.push_back(token.chosen.id);
        choice.logprobs.push_back(token.chosen.logprob);
      }
      choice.finish = chunk.finish;
      tokens = tokens_ += static_cast<int>(chunk.tokens.size());
    });
    if (on_token_) on_token_(tokens);
  }
  void on_classification(Classification result) override {
    change([&] { answer_.classification = std::move(result); });
  }
  void on_done(const FinalInfo& info) override {
    end([&] { answer_.done = info; });
  }
  void on_error(const Error& error) override {
    end([&] { answer_.error = error; });
  }

  Answer wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_; });
    return answer_;
  }
  // False if the request ended first.
  bool wait_for_tokens(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ || tokens_ >= count; });
    return tokens_ >= count;
  }
  int calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

 private:
  template <typename Body>
  void change(Body&& body) {
    {
      const std::lock_guard lock(mutex_);
      EXPECT_FALSE(ended_) << "told something after its end";
      ++calls_;
      body();
    }
    changed_.notify_all();
  }
  template <typename Body>
  void end(Body&& body) {
    change([&] {
      body();
      ended_ = true;
    });
  }

  std::function<void(int)> on_token_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Answer answer_;
  int tokens_ = 0, calls_ = 0;
  bool ended_ = false;
};

}  // namespace valora::testing
