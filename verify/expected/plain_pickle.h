// Reads pickles of nothing but lists, dictionaries, strings and numbers, without running anything: every opcode that could
// name a class or call one is refused. Source: CPython, Lib/pickletools.py.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/formats/json.h"

namespace assay {

// The same value as JSON; nullopt for any other pickle, and for what is damaged. Deep or repeated nesting is refused too.
std::optional<ParsedJson> read_plain_pickle(std::string_view bytes);

}  // namespace assay
