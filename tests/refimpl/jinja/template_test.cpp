// Templates against jinja2 as transformers sets it up (data/make_jinja_fixtures.py), and what hostile ones may cost.
#include "refimpl/jinja/template.h"

#include <gtest/gtest.h>

#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/json.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::jinja {
namespace {

RenderOptions fixed_clock() {
  RenderOptions options;
  options.now = moment_from_text("2026-02-03T04:05:06");
  return options;
}

std::string render(std::string_view source, std::string_view variables = "{}") {
  return Template::parse(source, "t.jinja").render(variables, fixed_clock());
}

// The one line of the error, or what was rendered instead.
std::string refusal(std::string_view source, std::string_view variables = "{}") {
  try {
    return "rendered: " + render(source, variables);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input) << source;
    return error.line();
  }
}

// A construct a row: the text that jinja2 writes, or an error where it raises one.
TEST(Jinja, EveryConstructAsJinja2) {
  const Json all =
      Json::parse(read_small_file(test::source_dir() / "data/fixtures/jinja/language.json", 16 << 20));
  const std::string variables = all.at("variables").dump();
  std::size_t errors = 0;
  for (const Json& row : all.at("rows")) {
    const std::string source = row[1].get<std::string>();
    const std::string place = row[0].get<std::string>() + ": " + source;
    if (row[2].is_object()) {
      ++errors;
      EXPECT_FALSE(refusal(source, variables).starts_with("rendered: ")) << place;
      continue;
    }
    try {
      EXPECT_EQ(render(source, variables), row[2].get<std::string>()) << place;
    } catch (const Error& error) {
      ADD_FAILURE() << place << "\n" << error.line();
    }
  }
  EXPECT_GT(all.at("rows").size(), 700u);
  EXPECT_GT(errors, 200u);
}

TEST(Jinja, ErrorsNameTheTemplateTheLineAndTheCause) {
  EXPECT_EQ(refusal("a\n{{ x.y }}"), "t.jinja: line 2: 'x' is undefined");
  EXPECT_EQ(refusal("a\n\n{% if %}"), "t.jinja: line 3: expected an expression, got '%}'");
  EXPECT_EQ(refusal("{{ raise_exception('no ' ~ role) }}", R"({"role": "tool"})"),
            "t.jinja: line 1: the template refuses: no tool");
  EXPECT_EQ(refusal("{{ 'a' | nofilter }}"), "t.jinja: line 1: no filter is named 'nofilter'");
  EXPECT_EQ(refusal("{% macro m() %}\n{{ 1 // 0 }}\n{% endmacro %}\n{{ m() }}"),
            "t.jinja: line 2: integer division or modulo by zero");
  EXPECT_EQ(refusal("{{ d.a.b }}", R"({"d": {}})"), "t.jinja: line 1: 'dict object' has no attribute 'a'");
  EXPECT_EQ(refusal("{{ '\xff' }}"), "t.jinja: the template is not UTF-8");
}

// What jinja2 would take, and nobody should: an address in memory, chance, numbers beyond 64 bits.
TEST(Jinja, RefusesWhatNoPromptCanWant) {
  EXPECT_EQ(refusal("{{ range }}"),
            "t.jinja: line 1: the template writes a function object, which is an address in memory");
  EXPECT_NE(refusal("{{ [1, 2] | random }}").find("chance"), std::string::npos);
  EXPECT_NE(refusal("{{ lipsum() }}").find("random"), std::string::npos);
  EXPECT_NE(refusal("{{ 9223372036854775807 + 1 }}").find("64 bits"), std::string::npos);
  EXPECT_NE(refusal("{{ 'x' | urlize }}").find("not supported"), std::string::npos);
  EXPECT_EQ(render("{{ x }} {{ x | tojson }} {{ x == y }}",
                   R"({"x": 18446744073709551615, "y": 18446744073709551615})"),
            "18446744073709551615 18446744073709551615 True");
}

TEST(Jinja, HostileTemplatesAreStopped) {
  std::string deep = "x", sums = "x", lists = "[", tags;
  for (int i = 0; i < 100'000; ++i) deep = i < 5000 ? "(" + deep + ")" : deep, lists += "[", sums += "+x";
  for (int i = 0; i < 5000; ++i) tags += "{% if x %}";
  for (const std::string& source :
       {std::string("{{ 'a' * 10**9 }}"),
        std::string("{{ 'a' * 10**18 * 100 }}"),
        std::string("{{ [1] * 10**9 }}"),
        std::string("{{ range(10**6) }}"),
        "{{ " + deep + " }}",
        "{{ " + sums + " }}",
        "{{ " + lists + " }}",
        tags,
        std::string("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
        std::string("{% set ns = namespace(s='ab') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% "
                    "endfor %}"),
        std::string("{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% "
                    "endfor %}"),
        std::string(
            "{% set ns = namespace(s=[]) %}{% for i in range(100000) %}{% set ns.s = [ns.s] %}{% endfor %}"),
        std::string("{% set ns = namespace(s='x') %}{% for i in range(100000) %}{% set ns.s = "
                    "ns.s|map('upper') %}{% endfor %}{{ ns.s|list }}"),
        std::string("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}"),
        std::string("{% for a in range(100000) %}{% for b in range(10000) %}x{% endfor %}{% endfor %}"),
        std::string("{% for a in range(1000) %}{{ 'x' * 1000000 }}{% endfor %}"),
        std::string("{% set ns = namespace() %}{% for a in range(100000) %}{% for b in range(1000) %}{% set "
                    "ns.n = namespace(n=ns.n) %}{% endfor %}{% endfor %}"),
        std::string("{{ '%0999999999d' % 1 }}"),
        std::string("{{ '%.999999999f' % 1.5 }}"),
        std::string("{{ '{:999999999}'.format(1) }}"),
        std::string("{{ 'a'.ljust(10**12) }}"),
        std::string("{{ 'a'|center(10**12) }}"),
        std::string("{{ 'a\nb'|indent(10**12) }}"),
        std::string("{{ '\t'.expandtabs(10**12) }}"),
        std::string("{{ ('a' * 10**6).replace('', 'b' * 10**6) }}"),
        std::string("{{ ('ab' * 10**6).replace('a', 'b' * 10**6) }}"),
        std::string("{{ [1]|tojson(indent=10**12) }}"),
        std::string("{{ 2 ** 10 ** 10 }}"),
        std::string("{{ 10 ** 10 ** 10 }}"),
        std::string("{{ 'a'.zfill(10**15) }}"),
        std::string("{{ [1]|batch(10**15, 0)|list }}"),
        std::string("{{ [1]|slice(10**15)|list }}"),
        std::string("{{ strftime_now('%9999999d') }}")}) {
    EXPECT_FALSE(refusal(source).starts_with("rendered: ")) << source.substr(0, 120);
  }
}

// Objects that hold one another go with the session.
TEST(Jinja, CyclesAreTakenApart) {
  EXPECT_EQ(render("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns.me.me is sameas ns }}"), "True");
  EXPECT_EQ(render("{% set ns = namespace() %}{% macro m(x) %}{% macro inner() %}{{ x }}{% endmacro %}"
                   "{% set ns.f = inner %}{% endmacro %}{{ m(5) }}{{ ns.f() }}"),
            "5");
  EXPECT_EQ(render("{% set ns = namespace() %}{% for i in range(50000) %}{% set ns.n = namespace(n=ns.n) "
                   "%}{% endfor %}{% set ns.n = 0 %}ok"),
            "ok");
  EXPECT_EQ(render("{% set ns = namespace() %}{% for a in [1, 2] recursive %}{% set ns.l = loop %}{{ a }}{% "
                   "endfor %}"),
            "12");
}

TEST(Jinja, MomentsAreReadAndWritten) {
  EXPECT_FALSE(moment_from_text("2026-02-30").has_value());
  EXPECT_FALSE(moment_from_text("26-02-03").has_value());
  EXPECT_FALSE(moment_from_text("2026-02-03T24:00:00").has_value());
  const auto moment = moment_from_text("2024-02-29 23:59:58");
  ASSERT_TRUE(moment.has_value());
  EXPECT_EQ(format_moment(*moment, "%d %b %Y %H:%M:%S %j %f%z"), "29 Feb 2024 23:59:58 060 000000");
}

}  // namespace
}  // namespace assay::jinja
