// The verdict of an examination, for people and for scripts.
#pragma once

#include <string>
#include <vector>

#include "cli/check/stages.h"

namespace assay {

struct CheckReport {
  std::string path;
  std::vector<Stage> stages;
  bool interrupted = false;
  std::size_t count(StageStatus status) const;
  std::size_t warnings() const;
  bool good(bool strict) const;
};

// "OK: …", "FAILED: …": the last line.
std::string verdict_line(const CheckReport& report, bool strict);
void render_text(const CheckReport& report, bool strict, const Output& output);
Json render_json(const CheckReport& report, bool strict);  // schema assay.check/1
std::string render_html(const CheckReport& report, bool strict);

}  // namespace assay
