// tojson as transformers has it: json.dumps, which neither escapes HTML nor, unless asked, other scripts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "refimpl/jinja/arguments.h"
#include "refimpl/jinja/filters.h"
#include "refimpl/jinja/unicode.h"

namespace assay::jinja {
namespace {

struct JsonStyle {
  bool ascii = false, sorted = false;
  std::optional<std::string> indent;
  std::string comma = ", ", colon = ": ";
};

class JsonWriter {
 public:
  explicit JsonWriter(const JsonStyle& style) : style_(style) {}

  std::string run(const Value& value) {
    put(value, 0);
    return out_.take();
  }

 private:
  void put(const Value& value, int depth) {
    count_work(1);
    switch (value.type()) {
      case Type::none: return out_.append("null");
      case Type::boolean: return out_.append(value.whole() != 0 ? "true" : "false");
      case Type::integer:
      case Type::wide:
      case Type::real: return out_.append(number(value));
      case Type::text: return put_text(value.str());
      case Type::list:
      case Type::tuple: return put_list(value.items(), depth);
      case Type::dict: return put_dict(value.as_dict(), depth);
      default: fail(fmt::format("tojson: Object of type {} is not JSON serializable", type_name(value)));
    }
  }

  static std::string number(const Value& value) {
    if (!value.is(Type::real) || std::isfinite(value.number())) return represent(value);
    return std::isnan(value.number()) ? "NaN" : value.number() < 0 ? "-Infinity" : "Infinity";
  }

  void put_text(std::string_view utf8) {
    static constexpr std::string_view kLetters = "\"\\bfnrt", kMeanings = "\"\\\b\f\n\r\t";
    std::string out = "\"";
    for (std::size_t at = 0; at < utf8.size();) {
      const std::size_t begin = at;
      const auto c = static_cast<std::uint32_t>(next_character(utf8, at));
      const std::size_t known = c < 0x80 ? kMeanings.find(static_cast<char>(c)) : std::string_view::npos;
      if (known != std::string_view::npos) {
        out += '\\';
        out += kLetters[known];
      } else if (c < 0x20 || (style_.ascii && c > 0x7E && c < 0x10000)) {
        out += fmt::format("\\u{:04x}", c);
      } else if (style_.ascii && c >= 0x10000) {
        out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((c - 0x10000) >> 10),
                           0xDC00 + ((c - 0x10000) & 0x3FF));
      } else {
        out += utf8.substr(begin, at - begin);
      }
    }
    out_.append(out + '"');
  }

  void new_line(int depth) {
    if (!style_.indent) return;
    out_.append("\n");
    for (int i = 0; i < depth; ++i) out_.append(*style_.indent);
  }

  void put_list(const Values& items, int depth) {
    if (items.empty()) return out_.append("[]");
    out_.append("[");
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i != 0) out_.append(style_.comma);
      new_line(depth + 1);
      put(items[i], depth + 1);
    }
    new_line(depth);
    out_.append("]");
  }

  void put_key(const Value& key) {
    switch (key.type()) {
      case Type::text: return put_text(key.str());
      case Type::none: return put_text("null");
      case Type::boolean: return put_text(key.whole() != 0 ? "true" : "false");
      case Type::integer:
      case Type::wide:
      case Type::real: return put_text(number(key));
      default:
        fail(fmt::format("tojson: keys must be str, int, float, bool or None, not {}", type_name(key)));
    }
  }

  void put_dict(const Dict& dict, int depth) {
    if (dict.entries.empty()) return out_.append("{}");
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style_.sorted)
      std::stable_sort(entries.begin(), entries.end(),
                       [](const auto* a, const auto* b) { return less(a->first, b->first); });
    out_.append("{");
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i != 0) out_.append(style_.comma);
      new_line(depth + 1);
      put_key(entries[i]->first);
      out_.append(style_.colon);
      put(entries[i]->second, depth + 1);
    }
    new_line(depth);
    out_.append("}");
  }

  const JsonStyle& style_;
  Buffer out_;
};

}  // namespace

Value to_json(Session&, const Value& subject, const Arguments& arguments) {
  const Values bound = bind("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}, 0);
  JsonStyle style;
  style.ascii = flag(bound[0]);
  style.sorted = flag(bound[3]);
  if (bound[1].is_text()) {
    style.indent = bound[1].str();
  } else if (!bound[1].is_missing() && !bound[1].is_none()) {
    const std::int64_t width = std::max<std::int64_t>(whole_argument(bound[1]), 0);
    Session::current()->check_text(static_cast<std::size_t>(width));
    style.indent = std::string(static_cast<std::size_t>(width), ' ');
  }
  if (style.indent) style.comma = ",";
  if (!bound[2].is_missing() && !bound[2].is_none()) {
    const Values both = collect(bound[2]);
    if (both.size() != 2) fail("tojson: separators have to be two");
    style.comma = text_argument("tojson", both[0]);
    style.colon = text_argument("tojson", both[1]);
  }
  return text(JsonWriter(style).run(subject));
}

}  // namespace assay::jinja
