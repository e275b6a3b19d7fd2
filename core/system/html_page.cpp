#include "core/system/html_page.h"

#include <fmt/format.h>

#include "core/system/text.h"

namespace assay::html {
namespace {

constexpr std::string_view kLight =
    "--page: #f7f7f5; --card: #ffffff; --ink: #1c1d21; --soft: #5c606b; --line: #dedfe3; --accent: #2456c5;\n"
    "  --good: #1a7f4b; --bad: #c02b32; --warn: #9a6b00;";
constexpr std::string_view kDark =
    "--page: #14161b; --card: #1d2027; --ink: #e9eaee; --soft: #a2a7b4; --line: #343946; --accent: #8db2ff;\n"
    "  --good: #5fd097; --bad: #ff8b8b; --warn: #e6c15a;";

constexpr std::string_view kStyle = R"css(* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 20px 16px 48px; }
h1 { font-size: 1.45rem; line-height: 1.25; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 30px 0 8px; }
p { margin: 4px 0; }
.soft { color: var(--soft); overflow-wrap: anywhere; }
.verdict { font-weight: 600; }
.good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(165px, 1fr)); gap: 10px; margin: 16px 0 4px; }
.tile, .card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 10px 12px; }
.tile b { display: block; font-size: 1.22rem; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.tile span { color: var(--soft); font-size: .82rem; display: block; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 10px; background: var(--card); }
table { border-collapse: collapse; width: 100%; font-size: .88rem; }
th, td { padding: 5px 10px; border-bottom: 1px solid var(--line); text-align: left; }
tr:last-child td { border-bottom: 0; }
th { color: var(--soft); font-weight: 600; white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code { font: 12.5px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 14px; margin-top: 8px; font-size: .85rem; color: var(--soft); }
)css";

}  // namespace

std::string head(const Head& h) {
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'{}\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n",
      h.scripts ? "; script-src 'unsafe-inline'" : "", escape(h.title));
  page += fmt::format("<style>\n:root {{\n  {} {}\n}}\n", kLight, h.light);
  page += fmt::format("@media (prefers-color-scheme: dark) {{ :root {{\n  {} {}\n}} }}\n", kDark, h.dark);
  if (h.scripts) {  // which may let the reader choose
    page += fmt::format(":root[data-theme=light] {{\n  color-scheme: light; {} {}\n}}\n", kLight, h.light);
    page += fmt::format(":root[data-theme=dark] {{\n  color-scheme: dark; {} {}\n}}\n", kDark, h.dark);
  }
  page += kStyle;
  page += h.style;
  return page + "</style>\n</head>\n<body>\n";
}

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : escape_for_terminal(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string tile(std::string_view figure, std::string_view what) {
  return fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", figure, what);
}

}  // namespace assay::html
