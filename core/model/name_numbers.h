// Numbers at the end of a name's parts, whatever stands before them: "3" of "layers.3", "layer_3", "block3".
#pragma once

#include <cstddef>
#include <string_view>

namespace assay {

// Where in `part` (a name between two dots) the number begins that ends it. Only canonical numbers are numbers of layers and
// experts: "07" is not 7. npos: it ends in none.
std::size_t number_begins(std::string_view part);

}  // namespace assay
