#include "jinja/loop.h"

#include "jinja/runtime.h"
#include "jinja/values/operators.h"

namespace valora::jinja {

// loop.cycle(…) and loop.changed(…).
struct LoopCall final : Callable {
  LoopCall(LoopPtr loop, bool cycle) : loop(std::move(loop)), cycle(cycle) {}
  int depth() const override { return loop->depth() + 1; }

  Result<Value> call(Runtime& runtime, CallArgs args) const override;

  LoopPtr loop;
  bool cycle;
};

Result<Value> LoopCall::call(Runtime& runtime, CallArgs args) const {
  if (!args.named.empty())
    return fault("loop." + std::string(cycle ? "cycle" : "changed") +
                 "() takes no keyword arguments");
  if (cycle) {
    if (args.positional.empty()) return fault("no items for cycling given");
    return args.positional[static_cast<size_t>(loop->index0_) % args.positional.size()];
  }
  VALORA_TRY(now,
             make_sequence(runtime.budget, Sequence::Kind::kTuple, std::move(args.positional)));
  bool same = false;
  if (loop->last_changed_) {
    VALORA_TRY(equals, equal(runtime.budget, *loop->last_changed_, now));
    same = equals;
  }
  // The loop stores the value, so it must not nest deeper than the loop itself.
  if (depth_of(now) > loop->depth_)
    return fault("loop.changed() got values that nest deeper than the loop's own");
  loop->last_changed_ = std::move(now);
  return Value(!same);
}

Result<std::optional<Value>> Loop::pull(Budget& budget) {
  for (;;) {
    VALORA_TRY(item, iterator_.next(budget));
    if (!item || !condition_) return item;
    VALORA_TRY(wanted, condition_(*item));
    if (wanted) return wanted;
  }
}

Result<std::optional<Value>> Loop::peek(Budget& budget) {
  if (ahead_.empty()) {
    VALORA_TRY(item, pull(budget));
    if (!item) return item;
    ahead_.push_back(std::move(*item));
  }
  return std::optional<Value>(ahead_.front());
}

Result<std::optional<Value>> Loop::next(Budget& budget) {
  std::optional<Value> item;
  if (!ahead_.empty()) {
    item = std::move(ahead_.front());
    ahead_.pop_front();
  } else {
    VALORA_TRY(pulled, pull(budget));
    item = std::move(pulled);
  }
  if (!item) return item;
  ++index0_;
  previous_ = std::move(current_);
  current_ = *item;
  return item;
}

Result<int64_t> Loop::length(Budget& budget) {
  if (!length_) {
    for (;;) {
      VALORA_TRY(item, pull(budget));
      if (!item) break;
      VALORA_CHECK(budget.take(sizeof(Value)));
      ahead_.push_back(std::move(*item));
    }
    length_ = index0_ + 1 + static_cast<int64_t>(ahead_.size());
  }
  return *length_;
}

Result<std::optional<Value>> Loop::attribute(Budget& budget, std::string_view name) {
  const auto value = [](auto v) { return std::optional<Value>(std::move(v)); };
  if (name == "index0") return value(index0_);
  if (name == "index") return value(index0_ + 1);
  if (name == "first") return value(index0_ == 0);
  if (name == "depth") return value(int64_t{1});
  if (name == "depth0") return value(int64_t{0});
  if (name == "cycle" || name == "changed")
    return value(CallablePtr(std::make_shared<LoopCall>(shared_from_this(), name == "cycle")));
  if (name == "previtem")
    return value(index0_ == 0 ? Value::undefined("there is no previous item") : previous_);
  if (name == "last" || name == "nextitem") {
    VALORA_TRY(following, peek(budget));
    if (name == "last") return value(!following);
    return value(following ? std::move(*following) : Value::undefined("there is no next item"));
  }
  if (name == "length" || name == "revindex" || name == "revindex0") {
    VALORA_TRY(total, length(budget));
    if (name == "length") return value(total);
    return value(total - index0_ - (name == "revindex0" ? 1 : 0));
  }
  return std::optional<Value>{};
}

}  // namespace valora::jinja
