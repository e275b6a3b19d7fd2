// Bills of materials that list the files of a model with their hashes: CycloneDX (JSON) and SPDX (2.x as JSON and as
// tag-value, 3 as JSON-LD).
//
// A file is held against the strongest hash that is known here. MD5 and SHA-1, of which other files can be made, vouch for
// nothing: where there is no other, what differs is a fault, and what agrees is told.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "verify/expected/expected.h"

namespace assay {

struct SbomFile {
  std::string name;
  bool surely = false;  // it is called a file; else a component that may be one (a model, a package)
  std::vector<std::pair<std::string, std::string>> hashes =
      {};  // algorithm as ClaimDigest calls it, digits as written
};

struct Sbom {
  std::string kind;  // "CycloneDX 1.6"
  std::vector<SbomFile> files;
};

// Whether the text is one, also one that is refused by name (XML, RDF, YAML).
bool is_sbom(std::string_view text);
// Throws Error::input for what is_sbom() says yes to and is malformed, or of a form that is not read.
Sbom parse_sbom(std::string_view text, const fs::path& source);

// The files it lists, below `root`. Of components that are not called files those alone that are here, or whose names
// are those of weights.
Expectation expect_from_sbom(std::string_view text, const fs::path& source, const fs::path& root);

}  // namespace assay
