#include "verify/signature/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "core/system/error.h"
#include "core/system/file.h"
#include "verify/signature/json_fields.h"

namespace assay::signature {
namespace {

constexpr std::uint64_t kMostPolicyBytes = 16ull << 20;
constexpr std::string_view kPolicySchema = "assay.signers/1";

void allow_only(const ParsedJson& object, std::initializer_list<std::string_view> names) {
  if (!object.is_object()) throw Error::input("holds something else where an object belongs");
  for (const auto& [name, value] : object.items()) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw Error::input(fmt::format("has a field '{}', which is not known", name));
  }
}

std::vector<std::string> texts_in(const ParsedJson& object, std::string_view name) {
  std::vector<std::string> texts;
  for (const ParsedJson& one : array_in(object, name)) {
    if (!one.is_string()) throw Error::input(fmt::format("{} holds what is no text", name));
    texts.push_back(one.get<std::string>());
  }
  if (texts.empty()) throw Error::input(fmt::format("{} is empty", name));
  return texts;
}

std::vector<std::string> names_of(const std::filesystem::path& path) {
  std::vector<std::string> names;
  for (const auto& part : path.relative_path()) {
    if (!part.empty()) names.push_back(part.string());
  }
  return names;
}

// Where signers are read into, and the files that they name.
struct Reading {
  std::filesystem::path folder;
  std::vector<std::unique_ptr<TrustedRoot>>& roots;
  std::vector<std::filesystem::path>& files;
  std::filesystem::path file(const std::string& name) { return files.emplace_back(folder / name); }
};

Method method_in(const ParsedJson& json, Reading& reading) {
  if (field(json, "public_key") != nullptr) {
    allow_only(json, {"public_key"});
    const auto file = reading.file(text_in(json, "public_key"));
    return ByKey{PublicKey::from_pem(read_small_file(file, kMostPolicyBytes), file),
                 file.filename().string()};
  }
  if (field(json, "ca") != nullptr) {
    allow_only(json, {"ca"});
    ByCertificate method;
    for (const std::string& name : texts_in(json, "ca")) {
      const auto file = reading.file(name);
      for (Certificate& one : certificates_from_pem(read_small_file(file, kMostPolicyBytes), file))
        method.anchors.push_back(std::move(one));
    }
    return method;
  }
  allow_only(json, {"identity", "issuer", "trusted_root"});
  Keyless method{{text_in(json, "identity"), text_in(json, "issuer")}, &embedded_trusted_root()};
  if (field(json, "trusted_root") != nullptr) {
    const auto file = reading.file(text_in(json, "trusted_root"));
    method.root = reading.roots.emplace_back(std::make_unique<TrustedRoot>(read_trusted_root(file))).get();
  }
  return method;
}

}  // namespace

bool fits(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = pattern.npos, from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != pattern.npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

Policy Policy::read(const std::filesystem::path& file) {
  const ParsedJson json = read_json(file, {.max_bytes = kMostPolicyBytes, .max_depth = 16});
  Policy policy;
  policy.files_.push_back(file);
  try {
    if (text_in(json, "schema") != kPolicySchema)
      throw Error::input(fmt::format("is no policy: its schema is not {}", kPolicySchema));
    allow_only(json, {"schema", "signers", "models"});
    Reading reading{file.parent_path(), policy.roots_, policy.files_};
    for (const auto& [name, signer] : object_in(json, "signers").items())
      policy.signers_.push_back({name, method_in(signer, reading)});
    for (const ParsedJson& rule : array_in(json, "models")) {
      allow_only(rule, {"path", "signers"});
      policy.rules_.push_back({names_of(text_in(rule, "path")), texts_in(rule, "signers")});
      if (policy.rules_.back().path.empty()) throw Error::input("path is empty");
      for (const std::string& name : policy.rules_.back().signers) {
        if (!object_in(json, "signers").contains(name))
          throw Error::input(fmt::format("has no signer '{}'", name));
      }
    }
    return policy;
  } catch (Error& error) {
    throw error.in(file);
  }
}

std::vector<NamedMethod> Policy::methods_for(const std::filesystem::path& model) const {
  const std::vector<std::string> names = names_of(model);
  for (const Rule& rule : rules_) {
    if (rule.path.size() > names.size() ||
        !std::equal(rule.path.rbegin(), rule.path.rend(), names.rbegin(),
                    [](const std::string& pattern, const std::string& name) { return fits(pattern, name); }))
      continue;
    std::vector<NamedMethod> methods;
    for (const NamedMethod& signer : signers_) {
      if (std::find(rule.signers.begin(), rule.signers.end(), signer.name) != rule.signers.end())
        methods.push_back(signer);
    }
    return methods;
  }
  throw Error::refused("no rule of the policy is about this model")
      .remedy("add one that names who may sign it");
}

}  // namespace assay::signature
