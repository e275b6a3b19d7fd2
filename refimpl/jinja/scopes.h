// Where each name's variable lies.
//
// Jinja turns templates into Python functions, and its names follow from that: a loop, a `with`, a block of text
// that is filtered or assigned has variables of its own, which begin as copies of those around it; `if` has none;
// a macro sees the variables around it as they are when it is called. A name that is assigned anywhere in a frame
// is the frame's own from its begin, be the assignment below. What no frame assigns comes from the context that the
// template is rendered with.
#pragma once

#include "refimpl/jinja/ast.h"

namespace assay::jinja {

// Fills in every Variable, Loads and Function of the program. Throws Error::input with a line for what Jinja
// refuses at this stage: unknown filters and tests, `break` outside of a loop, an assignment to `loop`.
void resolve_scopes(Program& program);

}  // namespace assay::jinja
