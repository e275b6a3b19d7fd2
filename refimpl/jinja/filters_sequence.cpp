// Filters of sequences. Those that are generators in Jinja are here: nothing is computed before it is asked for.
#include <fmt/format.h>

#include <algorithm>

#include "refimpl/jinja/arguments.h"
#include "refimpl/jinja/filters.h"
#include "refimpl/jinja/methods.h"
#include "refimpl/jinja/tests.h"
#include "refimpl/jinja/unicode.h"

namespace assay::jinja {
namespace {

// Reads on through another iterator.
class ChangedIterator : public Iterator {
 public:
  // `change` gives what an item becomes; nullopt: it is left out.
  using Change = std::function<std::optional<Value>(const Value&)>;
  ChangedIterator(IteratorPtr of, Change change) : of_(std::move(of)), change_(std::move(change)) {}
  bool next(Value& item) override {
    for (Value each; of_->next(each);) {
      count_work(1);
      if (auto changed = change_(each)) {
        item = std::move(*changed);
        return true;
      }
    }
    return false;
  }

 private:
  IteratorPtr of_;
  Change change_;
};

IteratorPtr iterate_or_fail(const Value& value) {
  IteratorPtr iterator = iterate(value);
  if (iterator == nullptr) fail(fmt::format("'{}' object is not iterable", type_name(value)));
  return iterator;
}

int depth_of(const Value& subject, const Arguments& arguments) {
  int depth = std::max(subject.depth(), deepest(arguments.positional));
  for (const auto& named : arguments.named) depth = std::max(depth, named.second.depth());
  return depth;
}

Value length_filter(Session&, const Value& subject, const Arguments& arguments) {
  positional("length", arguments, 0, 0);
  const auto size = length(subject);
  if (!size) fail(fmt::format("object of type '{}' has no length", type_name(subject)));
  return Value::of_integer(static_cast<std::int64_t>(*size));
}

Value default_filter(Session&, const Value& subject, const Arguments& arguments) {
  const Values bound = bind("default", arguments, {"default_value", "boolean"}, 0);
  if (!subject.is_undefined() && !(flag(bound[1]) && !truth(subject))) return subject;
  return bound[0].is_missing() ? text("") : bound[0];
}

Value first_filter(Session&, const Value& subject, const Arguments& arguments) {
  bind("first", arguments, {}, 0);
  Value item;
  return iterate_or_fail(subject)->next(item) ? item : undefined("No first item, sequence was empty.");
}

Value last_filter(Session&, const Value& subject, const Arguments& arguments) {
  bind("last", arguments, {}, 0);
  if ((subject.is_sequence() || subject.is_text()) && *length(subject) > 0)
    return get_item(subject, Value::of_integer(-1));
  const IteratorPtr backwards = reversed(subject);
  if (backwards == nullptr) fail(fmt::format("'{}' object is not reversible", type_name(subject)));
  Value item;
  return backwards->next(item) ? item : undefined("No last item, sequence was empty.");
}

Value random_filter(Session&, const Value& subject, const Arguments& arguments) {
  bind("random", arguments, {}, 0);
  if (length(subject) == std::optional<std::size_t>(0))
    return undefined("No random item, sequence was empty.");
  fail("random: a prompt that chance decides cannot be rendered");
}

Value list_filter(Session&, const Value& subject, const Arguments& arguments) {
  bind("list", arguments, {}, 0);
  return list(collect(subject));
}

Value items_filter(Session&, const Value& subject, const Arguments& arguments) {
  bind("items", arguments, {}, 0);
  return lazy(
      [subject]() -> IteratorPtr {
        if (subject.is_undefined()) return values_iterator({});
        if (!subject.is_dict()) fail("items: can only get item pairs from a mapping");
        return make<DictView>(subject, DictView::Kind::items).thing().iterate();
      },
      subject.depth());
}

Value reverse_filter(Session&, const Value& subject, const Arguments& arguments) {
  bind("reverse", arguments, {}, 0);
  if (subject.is_text()) return slice(subject, Value::none(), Value::none(), Value::of_integer(-1));
  if (IteratorPtr backwards = reversed(subject))
    return generator(std::move(backwards), subject.depth(), "list_reverseiterator");
  if (iterate(subject) == nullptr) fail("reverse: argument must be iterable");
  Values items = collect(subject);
  std::reverse(items.begin(), items.end());
  return list(std::move(items));
}

Value attr_filter(Session&, const Value& subject, const Arguments& arguments) {
  const Values bound = bind("attr", arguments, {"name"}, 1);
  const std::string& name = text_argument("attr", bound[0]);
  if (auto found = attribute(subject, name)) return *found;
  return undefined(fmt::format("'{}' has no attribute '{}'", object_name(subject), name));
}

// ---- in groups

Value batch_filter(Session&, const Value& subject, const Arguments& arguments) {
  const Values bound = bind("batch", arguments, {"linecount", "fill_with"}, 1);
  struct State {
    IteratorPtr from;
    Values group;
    bool ended = false;
  };
  auto state = std::make_shared<State>();
  return generator(
      [state, subject, bound](Value& out) {
        if (state->from == nullptr) state->from = iterate_or_fail(subject);
        for (Value item; !state->ended && state->from->next(item);) {
          const bool full =
              equal(Value::of_integer(static_cast<std::int64_t>(state->group.size())), bound[0]);
          if (full) out = list(std::exchange(state->group, {}));
          state->group.push_back(std::move(item));
          if (full) return true;
        }
        if (std::exchange(state->ended, true) || state->group.empty()) return false;
        const bool fills = !bound[1].is_missing() && !bound[1].is_none();
        if (fills && less(Value::of_integer(static_cast<std::int64_t>(state->group.size())), bound[0])) {
          const std::int64_t wanted = whole_argument(bound[0]);
          Session::current()->check_text(static_cast<std::size_t>(wanted));
          state->group.resize(static_cast<std::size_t>(wanted), bound[1]);
        }
        out = list(std::move(state->group));
        return true;
      },
      depth_of(subject, arguments));
}

Value slice_filter(Session&, const Value& subject, const Arguments& arguments) {
  const Values bound = bind("slice", arguments, {"slices", "fill_with"}, 1);
  return lazy(
      [subject, bound] {
        const Values items = collect(subject);
        const std::int64_t slices = whole_argument(bound[0]);
        if (slices == 0) fail("integer division or modulo by zero");
        if (slices > 1'000'000) fail("slice: too many slices");
        const std::int64_t size = static_cast<std::int64_t>(items.size());
        Values groups;
        auto at = items.begin();
        for (std::int64_t i = 0; i < slices; ++i) {
          const bool one_more = i < size % slices;
          const auto end = at + size / slices + (one_more ? 1 : 0);
          Values group(at, end);
          if (!bound[1].is_missing() && !bound[1].is_none() && !one_more) group.push_back(bound[1]);
          groups.push_back(list(std::move(group)));
          at = end;
        }
        return values_iterator(std::move(groups));
      },
      depth_of(subject, arguments));
}

Value unique_filter(Session&, const Value& subject, const Arguments& arguments) {
  const Values bound = bind("unique", arguments, {"case_sensitive", "attribute"}, 0);
  const bool ignore_case = !flag(bound[0]);
  return lazy(
      [subject, attribute = bound[1], ignore_case]() -> IteratorPtr {
        const AttributeGetter getter(attribute, {}, ignore_case);
        auto seen = std::make_shared<std::map<std::string, bool>>();
        return std::make_unique<ChangedIterator>(
            iterate_or_fail(subject), [getter, seen](const Value& item) -> std::optional<Value> {
              const bool is_new = seen->emplace(hash_key(getter(item)), true).second;
              return is_new ? std::optional(item) : std::nullopt;
            });
      },
      depth_of(subject, arguments));
}

// ---- map, select and their kin

Value map_filter(Session& session, const Value& subject, const Arguments& arguments) {
  return lazy(
      [&session, subject, arguments]() -> IteratorPtr {
        if (!truth(subject)) return values_iterator({});
        if (arguments.positional.empty()) {
          const auto has_attribute = [](const auto& named) { return named.first == "attribute"; };
          if (std::none_of(arguments.named.begin(), arguments.named.end(), has_attribute))
            fail("map requires a filter argument");
          const Values bound = bind("map", arguments, {"attribute", "default"}, 0);
          return std::make_unique<ChangedIterator>(
              iterate_or_fail(subject), [getter = AttributeGetter(bound[0], bound[1])](const Value& item) {
                return std::optional(getter(item));
              });
        }
        const std::string name = text_argument("map", arguments.positional.front());
        Arguments rest = arguments;
        rest.positional.erase(rest.positional.begin());
        return std::make_unique<ChangedIterator>(
            iterate_or_fail(subject), [&session, name, rest](const Value& item) {
              return std::optional(call_filter(session, name, item, rest));
            });
      },
      depth_of(subject, arguments));
}

template <bool wanted, bool of_attribute>
Value select_filter(Session& session, const Value& subject, const Arguments& arguments) {
  return lazy(
      [&session, subject, arguments]() -> IteratorPtr {
        if (!truth(subject)) return values_iterator({});
        Arguments rest = arguments;
        const auto take = [&] {
          Value value = rest.positional.front();
          rest.positional.erase(rest.positional.begin());
          return value;
        };
        if (of_attribute && rest.positional.empty()) fail("missing parameter for attribute name");
        const AttributeGetter getter(of_attribute ? take() : Value());
        const std::optional<Value> test = rest.positional.empty() ? std::nullopt : std::optional(take());
        return std::make_unique<ChangedIterator>(
            iterate_or_fail(subject),
            [&session, getter, test, rest](const Value& item) -> std::optional<Value> {
              const Value looked_at = getter(item);
              const bool holds =
                  test ? call_test(session, text_argument("a test's name", *test), looked_at, rest)
                       : truth(looked_at);
              return holds == wanted ? std::optional(item) : std::nullopt;
            });
      },
      depth_of(subject, arguments));
}

constexpr std::pair<std::string_view, Filter> kSequenceFilters[] = {
    {"attr", &attr_filter},
    {"batch", &batch_filter},
    {"count", &length_filter},
    {"d", &default_filter},
    {"default", &default_filter},
    {"first", &first_filter},
    {"items", &items_filter},
    {"last", &last_filter},
    {"length", &length_filter},
    {"list", &list_filter},
    {"map", &map_filter},
    {"random", &random_filter},
    {"reject", &select_filter<false, false>},
    {"rejectattr", &select_filter<false, true>},
    {"reverse", &reverse_filter},
    {"select", &select_filter<true, false>},
    {"selectattr", &select_filter<true, true>},
    {"slice", &slice_filter},
    {"unique", &unique_filter},
};

}  // namespace

Filter sequence_filter(std::string_view name) {
  for (const auto& [known, filter] : kSequenceFilters) {
    if (known == name) return filter;
  }
  return nullptr;
}

}  // namespace assay::jinja
