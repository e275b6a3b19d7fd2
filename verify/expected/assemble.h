// What every source does with the names it has read: refuse the dangerous, order the rest, narrow to what was
// asked.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "verify/expected/expected.h"

namespace assay {

// True when `name` may be used as a path below the root; otherwise a finding says why it is not looked for.
bool accept_name(std::string_view name, Findings& findings);

// Last step of a source: sorts files and settled names, merges entries that say the same twice, and reports
// those that contradict each other, that are file and folder at once, or that a file system which folds case
// or Unicode would take for one.
void finish(Expectation& expectation);

// Keeps what lies below `subfolder`, which becomes the root.
void narrow_to_folder(Expectation& expectation, std::string_view subfolder);
// Keeps the one file; its folder becomes the root. False when the expectation does not list it.
bool narrow_to_file(Expectation& expectation, std::string_view name);
// Keeps these files of `folder`; those that the expectation does not list are looked at all the same, with no
// digest.
void narrow_to_files(Expectation& expectation, const fs::path& folder, std::span<const std::string> names);

// Adds every file below the root that is not yet listed, with no digest: structure can still be checked.
void add_unlisted_files(Expectation& expectation);

// Whether `file` is there, and in this very folder: then it lies beside what it vouches for.
bool lies_in(const fs::path& file, const fs::path& folder);

// Forty lower-case hex digits: a commit, a git object.
bool is_commit_id(std::string_view text);
// "commit 1a2b3c4d5e", the form Trust::detail takes.
std::string commit_detail(std::string_view commit);

}  // namespace assay
