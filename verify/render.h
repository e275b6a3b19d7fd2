// A verification as people, scripts and gates read it.
#pragma once

#include <string>

#include "core/system/report.h"
#include "verify/verdict.h"
#include "verify/verify.h"

namespace assay {

// What the digests are compared with, or, where nobody gave any, the folder looked at.
std::string origin_of(const Expectation& expectation);

// "NAME: OK", "NAME: FAILED": the form sha256sum -c prints and scripts parse.
std::string status_line(const FileReport& file);

// Everything after the status lines: what is wrong, warnings, where the digests come from; the verdict comes
// last.
struct RenderOptions {
  bool ranges = false;          // damaged ranges as `curl -r` takes them
  bool tensor_digests = false;  // "HEX  FILE:TENSOR" lines
};
void render_text(const VerifyReport& report, const VerifyOptions& options, const RenderOptions& render,
                 const Output& output);
// The last line alone, unpainted.
std::string verdict_line(const VerifyReport& report, const VerifyOptions& options);

Json weights_json(const WeightShare& share);  // as JSON reports and receipts hold it
Json render_json(const VerifyReport& report, const VerifyOptions& options);  // schema assay.verify/1
// Its text, to where --json says, file by file: as a document a million of them take gigabytes.
void write_json(const VerifyReport& report, const VerifyOptions& options, const std::string& target);

}  // namespace assay
