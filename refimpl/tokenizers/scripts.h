// Runs of one Unicode script, for tokenizer.json's "UnicodeScripts".
#pragma once

#include <string>

namespace assay {

// Matches a run of characters of one script, spaces within it included. Kana and the prolonged sound mark
// count as Han, so that Japanese is not torn apart.
std::string script_run_pattern();

}  // namespace assay
