#include "core/system/html_page.h"
#include "core/system/json.h"
#include "paramcount/html_page.h"
#include "paramcount/page_data.h"
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

std::string page_of(const Json& document) {
  std::string page = html::head({.title = "assay paramcount",
                                 .style = html::kStyle,
                                 .light = html::kLight,
                                 .dark = html::kDark,
                                 .scripts = true});
  page += html::kBody;
  page += embeddable(document);
  page += html::kScriptStart;
  page += html::kHelperScript;
  page += html::kPictureScript;
  page += document.contains("pair") ? html::kPairScript : html::kScript;
  page += html::kScriptEnd;
  page += html::kEnd;
  return page;
}

Json drawn(const Model& model, const Question& question, const Answer& answer) {
  Json document = render_json(model, question, answer);
  document["page"] = page_data(model, question);
  return document;
}

}  // namespace

std::string render_html(const Model& model, const Question& question, const Answer& answer) {
  return page_of(drawn(model, question, answer));
}

std::string render_html_of_two(const Model& left, const Model& right, const Question& question) {
  const Json pair = Json::array(
      {drawn(left, question, answer(left, question)), drawn(right, question, answer(right, question))});
  return page_of({{"pair", pair}, {"modules", render_diff_json(left, right)["modules"]}});
}

}  // namespace assay
