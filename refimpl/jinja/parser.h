// From tokens to a tree, by Jinja's grammar with the tags that transformers adds: break, continue, generation.
#pragma once

#include "refimpl/jinja/ast.h"
#include "refimpl/jinja/lexer.h"

namespace assay::jinja {

// Throws Error::input with a line where the text is none that Jinja would take.
Program parse(std::string_view source, const Whitespace& whitespace);

}  // namespace assay::jinja
