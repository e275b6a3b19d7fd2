// What .gitattributes and the repository's configuration ask git to do to a blob when it writes the file.
//
// Asked of the commit (and of the repository's info/attributes), never of the work tree: a file beside the
// ones examined does not say how they are examined. Source: gitattributes(5); git-config(1), core.autocrlf
// and core.eol.
#pragma once

#include <git2.h>

#include <string>

#include "verify/expected/git_objects.h"

namespace assay::git {

struct CheckoutRule {
  // crlf: LF in the database, CRLF in the work tree. crlf_if_text: likewise, unless the file looks binary or
  // has a CR already (text=auto, core.autocrlf).
  enum class LineEnds { kept, crlf, crlf_if_text };
  LineEnds line_ends = LineEnds::kept;
  bool ident = false;    // $Id$ becomes $Id: <the blob's id> $
  std::string encoding;  // of the work tree; UTF-8 in the database; empty: the same
  std::string filter;    // a program of the user's, that is not git-lfs: not run here

  bool keeps_bytes() const {
    return line_ends == LineEnds::kept && !ident && encoding.empty() && filter.empty();
  }
};

struct Attribute;

class Attributes {
 public:
  Attributes(const Repository& repository, const git_oid& commit);
  // `path`: of a file in the commit.
  CheckoutRule rule_for(const std::string& path) const;

 private:
  CheckoutRule::LineEnds line_ends(const Attribute& text, const Attribute& eol) const;

  RepositoryPtr repository_;  // opened without a work tree
  git_oid commit_;
  enum class AutoCrlf { no, yes, input } auto_crlf_ = AutoCrlf::no;
  bool text_is_crlf_ = false;  // where a file is text, and nothing says how its lines end
};

}  // namespace assay::git
