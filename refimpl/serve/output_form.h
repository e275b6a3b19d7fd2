// What a request says of the form of its text: response_format, or a grammar, as GBNF.
#pragma once

#include <string>
#include <string_view>

#include "refimpl/serve/request_fields.h"

namespace assay {

// `body`: what the fields were read from. Empty: any text. Throws Error::input naming the field where it cannot be held to.
std::string output_form(RequestFields& fields, std::string_view body, std::size_t most_bytes);

}  // namespace assay
