// Included by xgrammar's sources, which are C++17, in loops that do not allocate
// (cmake/xgrammar.cmake).
#pragma once

namespace valora::grammar {

// Throws BudgetExceeded as `operator new` does. Does nothing on threads without a budget.
void poll_budget();

}  // namespace valora::grammar
