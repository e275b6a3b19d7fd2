// The filter pprint: Python's pprint.pformat, 80 columns wide.
#include <fmt/format.h>

#include <algorithm>

#include "refimpl/jinja/arguments.h"
#include "refimpl/jinja/filters.h"
#include "refimpl/jinja/unicode.h"

namespace assay::jinja {
namespace {

constexpr std::size_t kWidth = 80;

Value sorted_keys(const Value& value) {
  if (value.is_dict()) {
    Dict::Entries entries = value.as_dict().entries;
    for (auto& entry : entries) entry.second = sorted_keys(entry.second);
    std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      const bool numbers = a.first.is_number() && b.first.is_number();
      // Keys that have no order go by the names of their types.
      if (!numbers && a.first.type() != b.first.type()) return type_name(a.first) < type_name(b.first);
      return less(a.first, b.first);
    });
    return dict(std::move(entries));
  }
  if (!value.is_sequence()) return value;
  Values items = value.items();
  for (Value& item : items) item = sorted_keys(item);
  return value.is(Type::list) ? list(std::move(items)) : tuple(std::move(items));
}

class PrettyPrinter {
 public:
  std::string run(const Value& value) {
    put(value, 0, 0);
    return out_.take();
  }

 private:
  void put(const Value& value, std::size_t indent, std::size_t allowance) {
    const std::string whole = represent(value);
    if (count_characters(whole) + indent + allowance <= kWidth) return out_.append(whole);
    if (value.is_dict() && !value.as_dict().entries.empty())
      return put_dict(value.as_dict(), indent + 1, allowance + 1);
    if (value.is_sequence() && !value.items().empty()) return put_items(value, indent + 1, allowance + 1);
    if (value.is_text() &&
        (value.str().find(' ') != std::string::npos || value.str().find('\n') != std::string::npos))
      fail("pprint: a text longer than a line is not supported");
    out_.append(whole);
  }

  void new_line(std::size_t indent) { out_.append(",\n" + std::string(indent, ' ')); }

  void put_dict(const Dict& dict, std::size_t indent, std::size_t allowance) {
    out_.append("{");
    for (std::size_t i = 0; i < dict.entries.size(); ++i) {
      const std::string key = represent(dict.entries[i].first);
      const bool last = i + 1 == dict.entries.size();
      out_.append(key + ": ");
      put(dict.entries[i].second, indent + count_characters(key) + 2, last ? allowance : 1);
      if (!last) new_line(indent);
    }
    out_.append("}");
  }

  void put_items(const Value& value, std::size_t indent, std::size_t allowance) {
    const Values& items = value.items();
    const bool is_list = value.is(Type::list), alone = !is_list && items.size() == 1;
    out_.append(is_list ? "[" : "(");
    for (std::size_t i = 0; i < items.size(); ++i) {
      const bool last = i + 1 == items.size();
      put(items[i], indent, last ? allowance + (alone ? 1 : 0) : 1);
      if (!last) new_line(indent);
    }
    out_.append(is_list ? "]" : alone ? ",)" : ")");
  }

  Buffer out_;
};

}  // namespace

Value pprint(Session&, const Value& subject, const Arguments& arguments) {
  bind("pprint", arguments, {}, 0);
  return text(PrettyPrinter().run(sorted_keys(subject)));
}

}  // namespace assay::jinja
