#include "core/system/html_page.h"
#include "core/system/json.h"
#include "paramcount/html_page.h"
#include "paramcount/render.h"

namespace assay {
namespace {

// JSON inside <script>: no "<" may survive, so nothing in a name can end the element; U+2028/9 are fine in
// JSON.
std::string embeddable(const Json& document) {
  std::string out;
  for (const char c : dump_json(document, -1)) {
    if (c == '<')
      out += "\\u003c";
    else if (c == '>')
      out += "\\u003e";
    else if (c == '&')
      out += "\\u0026";
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string render_html(const Json& document) {
  std::string page = html::head({.title = "assay paramcount",
                                 .style = html::kStyle,
                                 .light = html::kLight,
                                 .dark = html::kDark,
                                 .scripts = true});
  page += html::kBody;
  page += embeddable(document);
  page += html::kScriptStart;
  page += html::kScript;
  page += html::kScriptEnd;
  page += html::kEnd;
  return page;
}

}  // namespace assay
