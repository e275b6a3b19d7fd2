// A model and the answers about it, as people, spreadsheets, scripts and browsers read them.
#pragma once

#include <string>
#include <vector>

#include "core/system/report.h"
#include "paramcount/paramcount.h"

namespace assay {

struct RenderSettings {
  int depth = 3;
  bool formulas = false;
  bool memory = false, compute = false;  // sections beyond a line each
};

std::string render_table(const Model& model, const Question& question, const Answer& answer,
                         const RenderSettings& settings);
std::string render_markdown(const Model& model, const Question& question, const Answer& answer,
                            const RenderSettings& settings);
std::string render_csv(const Model& model, const RenderSettings& settings);            // RFC 4180
Json render_json(const Model& model, const Question& question, const Answer& answer);  // assay.paramcount/1
// One file, no request to anywhere: of one model, or of two side by side.
std::string render_html(const Model& model, const Question& question, const Answer& answer);
std::string render_html_of_two(const Model& left, const Model& right, const Question& question);

std::string verdict_line(const Model& model, const Answer& answer);

std::string render_diff(const Model& left, const Model& right, const RenderSettings& settings, bool markdown);
Json render_diff_json(const Model& left, const Model& right);  // assay.paramcount-diff/1

}  // namespace assay
