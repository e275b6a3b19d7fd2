// The frame that every page of assay stands in: one file, no font, script or image from anywhere, and a
// policy that forbids all requests; light and dark as the reader's system is.
//
//   std::string page = html::head({.title = "assay convert", .style = kMarks});
//   page += "<main>" + … + "</main>";
//   page += html::kEnd;
#pragma once

#include <string>
#include <string_view>

namespace assay::html {

struct Head {
  std::string_view title;
  std::string_view style = {};             // rules of this page alone, after the shared ones
  std::string_view light = {}, dark = {};  // custom properties of this page alone: "--c0: #2f6fd0;"
  bool scripts = false;                    // the page carries a script of its own
};
// Up to and with <body>.
std::string head(const Head& head);
inline constexpr std::string_view kEnd = "</body>\n</html>\n";

std::string escape(std::string_view text);
// A figure and, small below it, what it is. Both are markup.
std::string tile(std::string_view figure, std::string_view what);

}  // namespace assay::html
