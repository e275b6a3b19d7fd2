// Filters that compare items, or add them up.
#include <fmt/format.h>

#include <algorithm>

#include "refimpl/jinja/arguments.h"
#include "refimpl/jinja/filters.h"
#include "refimpl/jinja/methods.h"

namespace assay::jinja {
namespace {

// sorted(reverse=…) takes whole numbers only.
bool reversed_order(const Value& given) {
  return !given.is_missing() && whole_argument(given) != 0;
}

struct Keyed {
  Value key, item;
};

// Equal ones keep their order, also where it is reversed, as Python's sorted.
void sort_by_key(std::vector<Keyed>& all, bool reverse) {
  std::stable_sort(all.begin(), all.end(), [&](const Keyed& a, const Keyed& b) {
    return reverse ? less(b.key, a.key) : less(a.key, b.key);
  });
}

Values items_of(const std::vector<Keyed>& all) {
  Values items;
  for (const Keyed& each : all) items.push_back(each.item);
  return items;
}

// "a,b.c": a list of several attributes as the key.
std::vector<AttributeGetter> several_getters(const Value& attributes, bool ignore_case) {
  std::vector<AttributeGetter> getters;
  if (!attributes.is_text()) {
    getters.emplace_back(attributes, Value(), ignore_case);
    return getters;
  }
  std::string_view rest = attributes.str();
  for (;;) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    getters.emplace_back(text(std::string(rest.substr(0, end))), Value(), ignore_case);
    if (end == rest.size()) return getters;
    rest.remove_prefix(end + 1);
  }
}

Value sort_filter(Session&, const Value& subject, const Arguments& arguments) {
  const Values bound = bind("sort", arguments, {"reverse", "case_sensitive", "attribute"}, 0);
  const auto getters = several_getters(bound[2], !flag(bound[1]));
  std::vector<Keyed> all;
  for (Value& item : collect(subject)) {
    Values key;
    for (const AttributeGetter& getter : getters) key.push_back(getter(item));
    all.push_back({list(std::move(key)), std::move(item)});
  }
  sort_by_key(all, reversed_order(bound[0]));
  return list(items_of(all));
}

Value dictsort_filter(Session&, const Value& subject, const Arguments& arguments) {
  const Values bound = bind("dictsort", arguments, {"case_sensitive", "by", "reverse"}, 0);
  const Value by = bound[1].is_missing() ? text("key") : bound[1];
  if (!equal(by, text("key")) && !equal(by, text("value")))
    fail("dictsort: you can only sort by either \"key\" or \"value\"");
  if (!subject.is_dict()) fail(fmt::format("dictsort: '{}' has no items()", type_name(subject)));
  const AttributeGetter getter({}, {}, !flag(bound[0]));
  std::vector<Keyed> all;
  for (const auto& [key, value] : subject.as_dict().entries)
    all.push_back({getter(by.str() == "key" ? key : value), tuple({key, value})});
  sort_by_key(all, reversed_order(bound[2]));
  return list(items_of(all));
}

template <bool largest>
Value extreme_filter(Session&, const Value& subject, const Arguments& arguments) {
  const Values bound = bind(largest ? "max" : "min", arguments, {"case_sensitive", "attribute"}, 0);
  const IteratorPtr iterator = iterate(subject);
  if (iterator == nullptr) fail(fmt::format("'{}' object is not iterable", type_name(subject)));
  Value best;
  if (!iterator->next(best)) return undefined("No aggregated item, sequence was empty.");
  const AttributeGetter getter(bound[1], {}, !flag(bound[0]));
  Value best_key = getter(best);
  for (Value item; iterator->next(item);) {
    Value key = getter(item);
    if (!(largest ? less(best_key, key) : less(key, best_key))) continue;
    best = std::move(item);
    best_key = std::move(key);
  }
  return best;
}

Value groupby_filter(Session&, const Value& subject, const Arguments& arguments) {
  const Values bound = bind("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  const bool ignore_case = !flag(bound[2]);
  const AttributeGetter getter(bound[0], bound[1], ignore_case), shown(bound[0], bound[1]);
  std::vector<Keyed> all;
  for (Value& item : collect(subject)) all.push_back({getter(item), std::move(item)});
  sort_by_key(all, false);
  Values groups;
  for (std::size_t begin = 0; begin < all.size();) {
    std::size_t end = begin + 1;
    while (end < all.size() && equal(all[begin].key, all[end].key)) ++end;
    Values items;
    for (std::size_t i = begin; i < end; ++i) items.push_back(all[i].item);
    Value name = ignore_case ? shown(items.front()) : all[begin].key;
    groups.push_back(Value(Type::tuple, std::make_shared<const Sequence>(
                                            Values{std::move(name), list(std::move(items))}, true)));
    begin = end;
  }
  return list(std::move(groups));
}

Value sum_filter(Session&, const Value& subject, const Arguments& arguments) {
  const Values bound = bind("sum", arguments, {"attribute", "start"}, 0);
  Value total = bound[1].is_missing() ? Value::of_integer(0) : bound[1];
  if (total.is_text()) fail("sum: can't sum strings [use ''.join(seq) instead]");
  const AttributeGetter getter(bound[0]);
  for (const Value& item : collect(subject)) total = compute(Operator::add, total, getter(item));
  return total;
}

constexpr std::pair<std::string_view, Filter> kOrderFilters[] = {
    {"dictsort", &dictsort_filter},  {"groupby", &groupby_filter}, {"max", &extreme_filter<true>},
    {"min", &extreme_filter<false>}, {"sort", &sort_filter},       {"sum", &sum_filter}};

}  // namespace

Filter order_filter(std::string_view name) {
  for (const auto& [known, filter] : kOrderFilters) {
    if (known == name) return filter;
  }
  return nullptr;
}

}  // namespace assay::jinja
