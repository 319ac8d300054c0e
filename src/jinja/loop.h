// The loop variable of a for block. Looks one item ahead only if the template requires it.
#pragma once

#include <deque>
#include <functional>

#include "jinja/values/access.h"

namespace valora::jinja {

class Loop : public std::enable_shared_from_this<Loop> {
 public:
  // The block's `if`: returns the item to use, or nullopt to skip it. May be empty.
  using Condition = std::function<Result<std::optional<Value>>(const Value&)>;
  Loop(const Value& iterated, Iterator iterator, Condition condition)
      : depth_(depth_of(iterated) + 2),  // because items may become tuples
        iterator_(std::move(iterator)),
        condition_(std::move(condition)) {}

  // The next item; nullopt at the end.
  Result<std::optional<Value>> next(Budget& budget);
  // Called at the end of the block, when the scope that its condition reads no longer exists.
  void finish() { condition_ = nullptr; }
  // nullopt if the loop variable has no such attribute.
  Result<std::optional<Value>> attribute(Budget& budget, std::string_view name);
  Result<int64_t> length(Budget& budget);
  int depth() const { return depth_; }

 private:
  friend struct LoopCall;
  Result<std::optional<Value>> pull(Budget& budget);
  Result<std::optional<Value>> peek(Budget& budget);

  int depth_;
  Iterator iterator_;
  Condition condition_;
  std::deque<Value> ahead_;
  std::optional<int64_t> length_;
  int64_t index0_ = -1;
  Value current_, previous_;
  std::optional<Value> last_changed_;
};

}  // namespace valora::jinja
