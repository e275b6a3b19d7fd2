// {{ value | filter(arguments) }}
#pragma once

#include <string_view>

#include "refimpl/jinja/value.h"

namespace assay::jinja {

using Filter = Value (*)(Session&, const Value& subject, const Arguments&);

bool is_filter(std::string_view name);
// Error where there is none of that name.
Value call_filter(Session& session, std::string_view name, const Value& subject, const Arguments& arguments);

// Of filters that take an attribute: "a.b.0" is the item 0 of b of a; missing or none: the item itself.
class AttributeGetter {
 public:
  explicit AttributeGetter(const Value& attribute, Value fallback = {}, bool ignore_case = false);
  Value operator()(const Value& item) const;

 private:
  Values parts_;
  Value fallback_;
  bool ignore_case_;
};

// A family of filters each, by name; nullptr: none of that name.
Filter text_filter(std::string_view name);      // filters_text.cpp
Filter number_filter(std::string_view name);    // filters_number.cpp
Filter sequence_filter(std::string_view name);  // filters_sequence.cpp
Filter order_filter(std::string_view name);     // filters_order.cpp
Filter markup_filter(std::string_view name);    // filters_markup.cpp

// tojson.cpp, wordwrap.cpp, pprint.cpp
Value to_json(Session& session, const Value& subject, const Arguments& arguments);
Value wordwrap(Session& session, const Value& subject, const Arguments& arguments);
Value pprint(Session& session, const Value& subject, const Arguments& arguments);

}  // namespace assay::jinja
