// Filters for HTML and URLs, which prompts meet seldom.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "refimpl/jinja/arguments.h"
#include "refimpl/jinja/filters.h"
#include "refimpl/jinja/unicode.h"

namespace assay::jinja {
namespace {

Value escape_filter(Session&, const Value& subject, const Arguments& arguments) {
  positional("escape", arguments, 0, 0);
  return is_safe(subject) ? subject : safe_text(escaped_for_html(write(subject)));
}

Value forceescape_filter(Session&, const Value& subject, const Arguments& arguments) {
  bind("forceescape", arguments, {}, 0);
  return safe_text(escaped_for_html(write(subject)));
}

Value safe_filter(Session&, const Value& subject, const Arguments& arguments) {
  bind("safe", arguments, {}, 0);
  return safe_text(write(subject));
}

Value xmlattr_filter(Session& session, const Value& subject, const Arguments& arguments) {
  const Values bound = bind("xmlattr", arguments, {"autospace"}, 0);
  if (!subject.is_dict()) fail(fmt::format("xmlattr: '{}' has no items()", type_name(subject)));
  std::string out;
  for (const auto& [key, value] : subject.as_dict().entries) {
    if (value.is_none() || value.is_undefined()) continue;
    const std::string& name = text_argument("xmlattr", key);
    if (name.find_first_of(" \t\n\r\f\v/>=") != std::string::npos)
      fail(fmt::format("xmlattr: invalid character in attribute name: {}", represent_text(name)));
    const auto escaped = [](const Value& v) { return is_safe(v) ? v.str() : escaped_for_html(write(v)); };
    out += fmt::format("{}{}=\"{}\"", out.empty() ? "" : " ", escaped(key), escaped(value));
  }
  if (!out.empty() && (bound[0].is_missing() || truth(bound[0]))) out.insert(0, " ");
  return text(std::move(out), session.autoescape);
}

std::string quoted(const Value& value, bool for_query) {
  static constexpr std::string_view kPlain = "_.-~";
  std::string out;
  const std::string source = write(value);
  if (has_half_surrogate(source)) fail("urlencode: half a surrogate pair cannot be encoded");
  for (const char c : source) {
    const bool letter = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
    if (letter || kPlain.find(c) != std::string_view::npos || (c == '/' && !for_query)) {
      out += c;
    } else if (c == ' ' && for_query) {
      out += '+';
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

Value urlencode_filter(Session&, const Value& subject, const Arguments& arguments) {
  bind("urlencode", arguments, {}, 0);
  if (subject.is_text() || iterate(subject) == nullptr) return text(quoted(subject, false));
  std::string out;
  const auto add = [&](const Value& key, const Value& value) {
    out += fmt::format("{}{}={}", out.empty() ? "" : "&", quoted(key, true), quoted(value, true));
  };
  if (subject.is_dict()) {
    for (const auto& [key, value] : subject.as_dict().entries) add(key, value);
    return text(std::move(out));
  }
  for (const Value& pair : collect(subject)) {
    const Values both = collect(pair);
    if (both.size() != 2) fail(fmt::format("urlencode: pairs are wanted, and one has {} items", both.size()));
    add(both[0], both[1]);
  }
  return text(std::move(out));
}

// ---- striptags

// &name; or &#number;: what html.unescape makes of the entities that text is likely to hold.
std::string unescaped(std::string_view rest) {
  static constexpr std::pair<std::string_view, std::string_view> kEntities[] = {
      {"amp;", "&"}, {"lt;", "<"}, {"gt;", ">"}, {"quot;", "\""}, {"apos;", "'"}, {"nbsp;", "\u00A0"}};
  std::string out;
  while (!rest.empty()) {
    const std::size_t plain = std::min(rest.find('&'), rest.size());
    out += rest.substr(0, plain);
    rest.remove_prefix(plain);
    if (rest.empty()) break;
    rest.remove_prefix(1);
    const auto named = std::find_if(std::begin(kEntities), std::end(kEntities),
                                    [&](const auto& entity) { return rest.starts_with(entity.first); });
    if (named != std::end(kEntities)) {
      out += named->second;
      rest.remove_prefix(named->first.size());
      continue;
    }
    const bool hex = rest.starts_with("#x") || rest.starts_with("#X");
    std::uint32_t code = 0;
    const char* const digits = rest.data() + (hex ? 2 : std::min<std::size_t>(1, rest.size()));
    const auto [end, error] = std::from_chars(digits, rest.data() + rest.size(), code, hex ? 16 : 10);
    const bool numeric = rest.starts_with('#') && end != digits && error == std::errc();
    const bool plain_character = (code >= 0x20 && code < 0x7F) || (code >= 0xA0 && code < 0xD800);
    if (numeric && plain_character) {
      append_character(out, code);
      rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
      if (rest.starts_with(';')) rest.remove_prefix(1);
      continue;
    }
    const bool letter = !rest.empty() && (rest[0] | 0x20) >= 'a' && (rest[0] | 0x20) <= 'z';
    if (letter || numeric || rest.starts_with('#'))
      fail("striptags: an entity of HTML that is not known here");
    out += '&';
  }
  return out;
}

Value striptags_filter(Session&, const Value& subject, const Arguments& arguments) {
  bind("striptags", arguments, {}, 0);
  const std::string source = write(subject);
  std::string kept;
  std::size_t at = 0;
  for (std::size_t open = source.find('<'); open != std::string::npos; open = source.find('<', at)) {
    const bool comment = source.compare(open, 4, "<!--") == 0;
    const std::size_t close = comment ? source.find("-->", open + 4) : source.find('>', open);
    if (close == std::string::npos) break;
    kept.append(source, at, open - at);
    at = close + (comment ? 3 : 1);
  }
  kept.append(source, at);
  std::string joined;
  for (const std::string_view word : split_words(kept, -1))
    joined += (joined.empty() ? "" : " ") + std::string(word);
  return text(unescaped(joined));
}

Value urlize_filter(Session&, const Value&, const Arguments&) {
  fail("the filter urlize is not supported: it makes links for web pages");
}

constexpr std::pair<std::string_view, Filter> kMarkupFilters[] = {
    {"e", &escape_filter},      {"escape", &escape_filter},       {"forceescape", &forceescape_filter},
    {"safe", &safe_filter},     {"striptags", &striptags_filter}, {"urlencode", &urlencode_filter},
    {"urlize", &urlize_filter}, {"xmlattr", &xmlattr_filter},
};

}  // namespace

Filter markup_filter(std::string_view name) {
  for (const auto& [known, filter] : kMarkupFilters) {
    if (known == name) return filter;
  }
  return nullptr;
}

}  // namespace assay::jinja
