#include "verify/signature/statement.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/text.h"
#include "verify/signature/encoding.h"
#include "verify/signature/json_fields.h"

namespace assay::signature {
namespace {

constexpr std::string_view kInTotoStatement = "https://in-toto.io/Statement/v1";
constexpr std::string_view kPredicate = "https://model_signing/signature/v1.0";
constexpr std::string_view kFirstPredicate = "https://model_signing/Digests/v0.1";
constexpr JsonLimits kPayloadLimits{.max_bytes = 512ull << 20, .max_depth = 32};

std::size_t digest_bytes(FileHash hash) {
  return hash == FileHash::blake2b ? 64 : 32;
}

FileHash hash_named(const std::string& name) {
  if (name == "sha256") return FileHash::sha256;
  if (name == "blake2b" || name == "blake2") return FileHash::blake2b;  // model-signing writes blake2
  if (name == "blake3") return FileHash::blake3;
  throw Error::refused(fmt::format("its files are hashed by '{}', which is not known here", name))
      .remedy("sign with sha256, blake2b or blake3");
}

std::string digest_in(const ParsedJson& object, std::string_view name, FileHash hash) {
  const std::string& digits = text_in(object, name);
  auto digest = from_hex(digits);
  if (!digest || digest->size() != digest_bytes(hash))
    throw Error::refused(fmt::format("'{}' is no {} digest", digits, name_of(hash)));
  return std::move(*digest);
}

// "weights.bin:0:1000000": the file, and where the shard begins and ends.
struct Shard {
  std::string file;
  std::uint64_t begin, end;
  std::string digest;
};

Shard parse_shard(const std::string& name, std::string digest) {
  const auto last = name.rfind(':');
  const auto first = last == name.npos || last == 0 ? name.npos : name.rfind(':', last - 1);
  if (first != name.npos) {
    const auto begin = parse_u64(std::string_view(name).substr(first + 1, last - first - 1));
    const auto end = parse_u64(std::string_view(name).substr(last + 1));
    if (begin && end && *begin <= *end) return {name.substr(0, first), *begin, *end, std::move(digest)};
  }
  throw Error::refused(fmt::format("'{}' is no shard of a file", name));
}

// They may be listed by their numbers, as model-signing does, or by their names (OMS 1.0, §6.4), in which 1000:2000
// comes before 200:300. In a file they have to follow one another, each but the last of the whole size.
void add_shards(std::vector<Shard> shards, SignedModel& model) {
  std::sort(shards.begin(), shards.end(), [](const Shard& a, const Shard& b) {
    return std::tie(a.file, a.begin, a.end) < std::tie(b.file, b.begin, b.end);
  });
  for (Shard& shard : shards) {
    if (model.files.empty() || model.files.back().name != shard.file)
      model.files.push_back({shard.file, 0, {}});
    SignedFile& file = model.files.back();
    const bool after_short_one = file.size % model.shard_bytes != 0;
    if (shard.begin != file.size || after_short_one || shard.end - shard.begin > model.shard_bytes ||
        (!file.digests.empty() && (file.size == 0 || shard.end == shard.begin)))
      throw Error::refused(fmt::format("the shard '{}:{}:{}' does not follow the one before", shard.file,
                                       shard.begin, shard.end));
    file.size = shard.end;
    file.digests.push_back(std::move(shard.digest));
  }
}

void read_serialization(const ParsedJson& json, SignedModel& model) {
  const std::string& method = text_in(json, "method");
  model.hash = hash_named(text_in(json, "hash_type"));
  if (method == "shards") {
    model.shard_bytes = static_cast<std::uint64_t>(count_in(json, "shard_size"));
    if (model.shard_bytes == 0) throw Error::refused("shard_size is 0");
  } else if (method != "files") {
    throw Error::refused(fmt::format("its files are serialized by '{}', which is not known here", method));
  }
  if (const ParsedJson* links = field(json, "allow_symlinks"))
    model.allow_symlinks = links->is_boolean() && links->get<bool>();
  if (field(json, "ignore_paths") == nullptr) return;
  for (const ParsedJson& path : array_in(json, "ignore_paths")) {
    if (!path.is_string()) throw Error::input("ignore_paths holds what is no text");
    model.ignore_paths.push_back(path.get<std::string>());
  }
}

// Of a shard's digest some signers write the algorithm as "sha256-sharded-1000000": its beginning says which.
void read_resources(const ParsedJson& resources, SignedModel& model, std::string& digests) {
  std::vector<Shard> shards;
  for (const ParsedJson& resource : resources) {
    const std::string& algorithm = text_in(resource, "algorithm");
    if (!algorithm.starts_with(name_of(model.hash)))
      throw Error::refused(
          fmt::format("a file is hashed by '{}' where hash_type is {}", algorithm, name_of(model.hash)));
    std::string digest = digest_in(resource, "digest", model.hash);
    digests += digest;
    const std::string& name = text_in(resource, "name");
    if (model.shard_bytes > 0)
      shards.push_back(parse_shard(name, std::move(digest)));
    else
      model.files.push_back({name, 0, {std::move(digest)}});
  }
  add_shards(std::move(shards), model);
}

void refuse_doubles(const SignedModel& model) {
  std::set<std::string_view> names;
  for (const SignedFile& file : model.files) {
    if (file.name.empty()) throw Error::refused("a file has no name");
    if (!names.insert(file.name).second) throw Error::refused(fmt::format("'{}' is listed twice", file.name));
  }
  if (model.files.empty()) throw Error::refused("it lists no file");
}

SignedModel read_current(const ParsedJson& json) {
  SignedModel model;
  const ParsedJson& subjects = array_in(json, "subject");
  if (subjects.size() != 1) throw Error::refused("it has to have one subject, the model");
  model.name = text_in(subjects[0], "name");
  if (model.name.empty()) throw Error::refused("its subject has no name");
  const ParsedJson& predicate = object_in(json, "predicate");
  read_serialization(object_in(predicate, "serialization"), model);
  std::string digests;
  read_resources(array_in(predicate, "resources"), model, digests);
  model.root = hex(sha256(digests));
  if (digest_in(object_in(subjects[0], "digest"), "sha256", FileHash::sha256) != sha256(digests))
    throw Error::refused("the subject's digest is not that of the files listed");
  return model;
}

SignedModel read_first_release(const ParsedJson& json) {
  SignedModel model;
  model.first_release = true;
  for (const ParsedJson& subject : array_in(json, "subject"))
    model.files.push_back(
        {text_in(subject, "name"), 0, {digest_in(object_in(subject, "digest"), "sha256", FileHash::sha256)}});
  return model;
}

}  // namespace

std::string_view name_of(FileHash hash) {
  return hash == FileHash::sha256 ? "sha256" : hash == FileHash::blake2b ? "blake2b" : "blake3";
}

SignedModel parse_statement(std::string_view payload) {
  const ParsedJson json = parse_json(payload, "the signed payload", kPayloadLimits);
  if (text_in(json, "_type") != kInTotoStatement)
    throw Error::refused("its payload is no in-toto statement v1");
  const std::string& predicate = text_in(json, "predicateType");
  if (predicate != kPredicate && predicate != kFirstPredicate)
    throw Error::refused(fmt::format("it states '{}', which is no model's list of files", predicate));
  SignedModel model = predicate == kPredicate ? read_current(json) : read_first_release(json);
  refuse_doubles(model);
  return model;
}

bool claims_first_release(std::string_view payload) {
  return payload.find(kFirstPredicate) != payload.npos;
}

std::string write_statement(const SignedModel& model) {
  std::vector<const SignedFile*> files;
  for (const SignedFile& file : model.files) files.push_back(&file);
  std::sort(files.begin(), files.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  std::string digests;
  Json resources = Json::array();
  for (const SignedFile* file : files) {
    digests += file->digests.at(0);
    resources.push_back(
        {{"name", file->name}, {"digest", hex(file->digests[0])}, {"algorithm", name_of(model.hash)}});
  }
  Json ignored = Json::array();
  for (const std::string& path : model.ignore_paths) ignored.push_back(path);
  const Json statement = {
      {"_type", kInTotoStatement},
      {"subject", {{{"name", model.name}, {"digest", {{"sha256", hex(sha256(digests))}}}}}},
      {"predicateType", kPredicate},
      {"predicate",
       {{"resources", std::move(resources)},
        {"serialization",
         {{"method", "files"},
          {"hash_type", name_of(model.hash)},
          {"allow_symlinks", model.allow_symlinks},
          {"ignore_paths", std::move(ignored)}}}}}};
  return statement.dump();
}

}  // namespace assay::signature
