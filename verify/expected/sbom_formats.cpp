// How each kind of bill of materials writes its files and their hashes.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "core/system/text.h"
#include "verify/expected/sbom.h"

namespace assay {
namespace {

constexpr JsonLimits kSbomLimits{.max_bytes = 1ull << 30, .max_depth = 256};

// "SHA-256", "SHA256", "sha3_256" and "BLAKE2b-512" as one name each: "sha256", "sha3-256", "blake2b512".
std::string algorithm_named(std::string_view written) {
  std::string plain;
  for (const char c : written) {
    if (c != '-' && c != '_') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (const auto slash = plain.rfind('/'); slash != plain.npos) plain.erase(0, slash + 1);  // an IRI
  if (plain.starts_with("sha3") && plain.size() == 7 && plain != "sha3840") plain.insert(4, "-");
  return plain;
}

std::string text_at(const ParsedJson& object, std::string_view key) {
  const auto it = object.is_object() ? object.find(key) : object.end();
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

const ParsedJson& array_at(const ParsedJson& object, std::string_view key) {
  static const ParsedJson kNone = ParsedJson::array();
  const auto it = object.is_object() ? object.find(key) : object.end();
  return it != object.end() && it->is_array() ? *it : kNone;
}

void read_components(const ParsedJson& components, Sbom& out) {
  for (const ParsedJson& component : components) {
    SbomFile file{.name = text_at(component, "name"), .surely = text_at(component, "type") == "file"};
    for (const ParsedJson& hash : array_at(component, "hashes"))
      file.hashes.emplace_back(algorithm_named(text_at(hash, "alg")), text_at(hash, "content"));
    if (!file.name.empty() && !file.hashes.empty()) out.files.push_back(std::move(file));
    read_components(array_at(component, "components"), out);
  }
}

Sbom read_cyclonedx(const ParsedJson& document) {
  Sbom out{.kind = "CycloneDX " + text_at(document, "specVersion"), .files = {}};
  if (const auto metadata = document.find("metadata"); metadata != document.end() && metadata->is_object()) {
    if (const auto main = metadata->find("component"); main != metadata->end())
      read_components(ParsedJson::array({*main}), out);
  }
  read_components(array_at(document, "components"), out);
  return out;
}

Sbom read_spdx2(const ParsedJson& document) {
  Sbom out{.kind = text_at(document, "spdxVersion"), .files = {}};
  const auto read = [&](const char* list, const char* name_key, bool surely) {
    for (const ParsedJson& one : array_at(document, list)) {
      SbomFile file{.name = text_at(one, name_key), .surely = surely};
      for (const ParsedJson& sum : array_at(one, "checksums"))
        file.hashes.emplace_back(algorithm_named(text_at(sum, "algorithm")), text_at(sum, "checksumValue"));
      if (!file.name.empty() && (surely || !file.hashes.empty())) out.files.push_back(std::move(file));
    }
  };
  read("files", "fileName", true);
  read("packages", "packageFileName", false);
  return out;
}

// An element's own hashes lie in it, or are elements themselves that it names by their ids.
Sbom read_spdx3(const ParsedJson& graph) {
  Sbom out{.kind = "SPDX 3", .files = {}};
  const auto either = [](const ParsedJson& object, const char* key, const char* other) {
    const std::string text = text_at(object, key);
    return text.empty() ? text_at(object, other) : text;
  };
  std::map<std::string, const ParsedJson*> by_id;
  for (const ParsedJson& element : graph) {
    if (const std::string id = either(element, "spdxId", "@id"); !id.empty()) by_id.emplace(id, &element);
  }
  for (const ParsedJson& element : graph) {
    const std::string type = either(element, "type", "@type");
    const bool is_file = type.ends_with("File");
    if (!is_file && !type.ends_with("Package")) continue;
    SbomFile file{.name = text_at(element, "name"), .surely = is_file};
    const auto uses = element.find("verifiedUsing");
    const ParsedJson one = uses == element.end() ? ParsedJson::array()
                           : uses->is_array()    ? *uses
                                                 : ParsedJson::array({*uses});
    for (const ParsedJson& use : one) {
      const auto named = use.is_string() ? by_id.find(use.get<std::string>()) : by_id.end();
      const ParsedJson& hash = named != by_id.end() ? *named->second : use;
      const std::string value = text_at(hash, "hashValue");
      if (!value.empty()) file.hashes.emplace_back(algorithm_named(text_at(hash, "algorithm")), value);
    }
    if (!file.name.empty() && (is_file || !file.hashes.empty())) out.files.push_back(std::move(file));
  }
  return out;
}

// "Tag: value" lines; <text> … </text> may hold anything, also such lines.
Sbom read_tag_value(std::string_view text) {
  Sbom out{.kind = "SPDX", .files = {}};
  bool in_text = false;
  SbomFile* last = nullptr;
  while (!text.empty()) {
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (in_text) {
      in_text = line.find("</text>") == line.npos;
      continue;
    }
    line = trim(line);
    const auto colon = line.find(':');
    if (colon == line.npos || line.starts_with('#')) continue;
    const std::string_view tag = line.substr(0, colon), value = trim(line.substr(colon + 1));
    in_text = value.starts_with("<text>") && value.find("</text>") == value.npos;
    if (tag == "SPDXVersion") out.kind = value;
    if (tag == "PackageName" || tag == "SnippetSPDXID") last = nullptr;
    if (tag == "FileName" || tag == "PackageFileName") {
      out.files.push_back({.name = std::string(value), .surely = tag == "FileName"});
      last = &out.files.back();
    }
    if ((tag != "FileChecksum" && tag != "PackageChecksum") || last == nullptr) continue;
    if (last->surely != (tag == "FileChecksum")) continue;
    const auto split = value.find(':');
    if (split == value.npos) continue;
    last->hashes.emplace_back(algorithm_named(trim(value.substr(0, split))),
                              std::string(trim(value.substr(split + 1))));
  }
  return out;
}

std::string_view without_bom(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return trim(text);
}

// What is not read, by name.
std::string refused_form(std::string_view text) {
  const std::string_view head = text.substr(0, 4096);
  if (head.starts_with('<') && head.find("cyclonedx.org/schema/bom") != head.npos) return "CycloneDX as XML";
  if (head.starts_with('<') && head.find("spdx.org/rdf") != head.npos) return "SPDX as RDF";
  if (!head.starts_with('{') &&
      (head.starts_with("spdxVersion:") || head.find("\nspdxVersion:") != head.npos))
    return "SPDX as YAML";
  return {};
}

bool is_tag_value(std::string_view text) {
  const auto at = text.substr(0, 65536).find("SPDXVersion:");
  return at == 0 || (at != text.npos && text[at - 1] == '\n');
}

// A key of the outermost object, without reading the whole twice: these stand in no model's listing.
bool has_key(std::string_view text, std::string_view key) {
  return text.starts_with('{') && text.find(key) != text.npos;
}

}  // namespace

bool is_sbom(std::string_view given) {
  const std::string_view text = without_bom(given);
  if (has_key(text, "\"bomFormat\"") || has_key(text, "\"spdxVersion\"")) return true;
  if (has_key(text, "\"@graph\"") && has_key(text, "spdx")) return true;
  return is_tag_value(text) || !refused_form(text).empty();
}

Sbom parse_sbom(std::string_view given, const fs::path& source) {
  const std::string_view text = without_bom(given);
  if (const std::string form = refused_form(text); !form.empty())
    throw Error::input(fmt::format("is {}, which is not read here", form))
        .in(source)
        .remedy("convert it to JSON (cyclonedx-cli convert, pyspdxtools)");
  if (!text.starts_with('{')) return read_tag_value(text);
  const ParsedJson document = parse_json(text, source, kSbomLimits);
  if (text_at(document, "bomFormat") == "CycloneDX") return read_cyclonedx(document);
  if (!text_at(document, "spdxVersion").empty()) return read_spdx2(document);
  if (document.contains("@graph")) return read_spdx3(array_at(document, "@graph"));
  throw Error::input("is JSON, but no bill of materials known here").in(source);
}

}  // namespace assay
