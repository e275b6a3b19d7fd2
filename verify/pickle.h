// Is this a pickle? Protocols 2 and later announce themselves (0x80 and the number); 0 and 1 are nothing but
// their opcodes, so the bytes are walked as a pickle machine would, and its stack is kept count of.
// Source: CPython, Lib/pickletools.py (opcodes, arguments, effect on the stack).
#pragma once

#include <cstddef>
#include <span>

namespace assay {

// `head`: the file's first bytes; `whole`: there are no others. Of a longer file, whatever the head shows
// must be sound.
bool looks_like_pickle(std::span<const std::byte> head, bool whole);

}  // namespace assay
