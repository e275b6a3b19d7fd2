// A fingerprint as text, as JSON, as a page.
#pragma once

#include "core/system/report.h"
#include "refimpl/fingerprint/fingerprint.h"

namespace assay {

// A line that begins with FOUND or CANNOT TELL.
std::string verdict_of(const Fingerprint& found);
void render_text(const Fingerprint& found, const Output& output);
Json render_json(const Fingerprint& found);
std::string render_html(const Fingerprint& found);

// Sentences that both text and page tell: what was asked, what was seen.
std::vector<std::string> account_of(const Fingerprint& found);
std::string published_in_words(const Fingerprint& found);

}  // namespace assay
