// What git does to text between the database and the work tree when .gitattributes asks for it: line ends
// (text, eol), $Id$ (ident), another encoding (working-tree-encoding). A clean clone's file then differs from
// its blob, and equals it once the conversion is undone as `git add` would.
// Source: gitattributes(5), "Effects"; git's convert.c, convert_to_git.
#pragma once

#include <string>

#include "core/formats/digest.h"
#include "core/system/file.h"

namespace assay::git {

struct Conversion {
  bool line_ends = false;  // CRLF on disk, LF in the database
  bool automatic = false;  // only where the file is text (text=auto)
  bool ident = false;      // $Id: …$ on disk, $Id$ in the database
  std::string encoding;    // on disk; UTF-8 in the database
  bool any() const { return line_ends || ident || !encoding.empty(); }
};

// Whether the file, taken back through the conversion, is the blob. False for what cannot be read.
bool equals_after_conversion(const fs::path& file, const Conversion& conversion, const Digest& blob);

}  // namespace assay::git
