// The messages and tools of a request, as chat templates want them. What OpenAI's API writes otherwise than templates
// read it is changed on the way: a content of several texts becomes one text, and the arguments of a tool's call, a
// string of JSON, become what they say.
#pragma once

#include <string_view>

#include "refimpl/serve/text_request.h"

namespace assay {

// `fields` is of the same body, which is read again here: keys keep their order. Throws Error::input naming the field.
void read_conversation(RequestFields& fields, std::string_view body, ChatRequestBody& request);

}  // namespace assay
