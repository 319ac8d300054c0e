#include <fmt/format.h>
#include <support/logging.h>

#include <new>
#include <optional>
#include <utility>

#include "base/fault.h"
#include "base/log/log.h"
#include "base/text/strings.h"
#include "base/text/unicode.h"
#include "grammar/parts.h"

namespace valora::grammar {
namespace {

// The first warning that xgrammar logged on this thread.
thread_local std::optional<std::string>* ignored = nullptr;

class Watch {
 public:
  Watch() { ignored = &first; }
  ~Watch() { ignored = nullptr; }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  std::optional<std::string> first;
};

// Adds what the budget has used to `spent`, also after an exception.
class Tally {
 public:
  Tally(const Budget& budget, Spent& spent) : budget_(budget), spent_(spent) {}
  ~Tally() { spent_.bytes += budget_.used(); }
  Tally(const Tally&) = delete;
  Tally& operator=(const Tally&) = delete;

 private:
  const Budget& budget_;
  Spent& spent_;
};

std::string clean(std::string_view reason) {
  while (!reason.empty() && (reason.back() == '\n' || reason.back() == '.'))
    reason.remove_suffix(1);
  return to_valid_utf8(shortened(reason, 300));
}

Error too_large(const std::string& what, const BudgetExceeded& over, const BudgetLimits& limits) {
  if (over.limit() == BudgetExceeded::Limit::kStop) return {ErrorCode::kCancelled, "cancelled", {}};
  if (over.limit() == BudgetExceeded::Limit::kTime)
    return invalid(fmt::format("{} is too complex: it takes more than {:.3g} seconds", what,
                               limits.cpu_seconds));
  return invalid(
      fmt::format("{} is too complex: it takes more than {} MiB", what, limits.bytes >> 20));
}

Status run(BudgetLimits limits, const std::string& what, Spent& spent,
           const std::function<void()>& body, std::stop_token stop) {
  try {
    const Budget budget(limits, std::move(stop));
    const Tally tally(budget, spent);
    body();
    return {};
  } catch (const BudgetExceeded& over) {
    spent.out_of_time = over.limit() == BudgetExceeded::Limit::kTime;
    return too_large(what, over, limits);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const xgrammar::LogFatalError& e) {
    return invalid(fmt::format("{} cannot be used: {}", what, clean(e.std::runtime_error::what())));
  } catch (const std::exception& e) {
    return invalid(fmt::format("{} cannot be used: {}", what, clean(e.what())));
  }
}

}  // namespace

Status guarded(BudgetLimits limits, const std::string& what, Spent& spent,
               const std::function<void()>& body, std::stop_token stop) {
  Watch watch;
  spent.out_of_time = false;
  const double begin = thread_seconds();
  Status done = run(limits, what, spent, body, std::move(stop));
  spent.seconds += thread_seconds() - begin;
  if (!done.ok()) return done;
  if (watch.first)
    return invalid(fmt::format("{} cannot be applied in full: {}", what, clean(*watch.first)));
  return {};
}

}  // namespace valora::grammar

// xgrammar is built to log through these functions.
namespace xgrammar {

void LogFatalImpl(const std::string& file, int line, const std::string& message) {
  throw LogFatalError(file, line, message);
}

void LogMessageImpl(const std::string& file, int line, int level, const std::string& message) {
  using valora::grammar::ignored;
  const valora::grammar::Budget::Pause pause;  // may be called from a destructor
  if (level >= XGRAMMAR_LOG_LEVEL_WARNING && ignored != nullptr && !*ignored) *ignored = message;
  spdlog::debug("{}:{}: {}", file, line, message);
}

}  // namespace xgrammar
