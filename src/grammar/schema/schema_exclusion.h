// Proves that two JSON schemas exclude each other, for "oneOf".
#pragma once

#include <optional>
#include <string>

#include "base/json/json.h"

namespace valora::grammar {

// Proves that schemas exclude each other. Both must be parts of a schema that SchemaCheck accepted.
// A claim that cannot be proved within the step limit counts as false.
class SchemaExclusion {
 public:
  // strict: the grammar's objects have no properties beyond those in their schema.
  SchemaExclusion(const OrderedJson& root, bool strict) : root_(root), strict_(strict) {}

  // True if no value produced by the grammar of `written` is valid under `other`.
  bool holds(const OrderedJson& written, const OrderedJson& other);

  // The name of a property for which the two object schemas list disjoint values, so that they
  // exclude each other if both require it.
  std::optional<std::string> tag(const OrderedJson& one, const OrderedJson& other);

  // The schema after following references and single-element "allOf"; null if there is none.
  const OrderedJson* resolved(const OrderedJson& schema) const;

 private:
  bool typed(const OrderedJson& written, const OrderedJson& other);
  bool objects(const OrderedJson& written, const OrderedJson& other);
  bool arrays(const OrderedJson& written, const OrderedJson& other);
  bool rejects(const OrderedJson& schema, const OrderedJson& value);
  bool rejects_object(const OrderedJson& schema, const OrderedJson& value);
  bool within(bool (SchemaExclusion::*step)(const OrderedJson&, const OrderedJson&),
              const OrderedJson& a, const OrderedJson& b);
  bool pair(const OrderedJson& written, const OrderedJson& other);
  bool value(const OrderedJson& schema, const OrderedJson& value);

  const OrderedJson& root_;
  const bool strict_;
  int depth_ = 0;
  int steps_ = 1000000;
};

}  // namespace valora::grammar
