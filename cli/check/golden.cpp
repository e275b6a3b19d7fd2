#include "cli/check/golden.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/formats/checkpoint.h"
#include "core/formats/stream_digest.h"
#include "core/numeric/element_type.h"
#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::string_view kSchema = "assay.golden/1";
constexpr std::uint64_t kMostRecord = 1ull << 30;
// A tensor is transposed in memory to see whether it is the transpose of what was recorded.
constexpr std::uint64_t kMostTransposed = 256ull << 20;
constexpr std::size_t kLogitsKept = 64;

const ParsedJson& member(const ParsedJson& object, const char* key, const fs::path& source) {
  const auto found = object.find(key);
  if (found == object.end()) throw Error::input(fmt::format("has no \"{}\"", key)).in(source);
  return *found;
}

TensorDigest read_tensor(const std::string& name, const ParsedJson& entry, const fs::path& source) {
  if (!entry.is_object()) throw Error::input("an entry of \"tensors\" is no object").in(source).tensor(name);
  TensorDigest tensor{.name = name,
                      .type = json_string(member(entry, "type", source), "type", source),
                      .sha256 = json_string(member(entry, "sha256", source), "sha256", source)};
  if (!Digest::parse(DigestKind::sha256, tensor.sha256))
    throw Error::input("its sha256 is no digest").in(source).tensor(name);
  for (const ParsedJson& size : member(entry, "shape", source))
    tensor.shape.push_back(json_u64(size, "shape", source));
  return tensor;
}

void read_behaviour(const ParsedJson& behaviour, Golden& golden) {
  const auto id = [&](const ParsedJson& value, const char* key) {
    const std::uint64_t number = json_u64(value, key, golden.source);
    if (number > 0xFFFFFFFF) throw Error::input(fmt::format("{} holds no token id", key)).in(golden.source);
    return static_cast<TokenId>(number);
  };
  for (const ParsedJson& token : member(behaviour, "tokens", golden.source))
    golden.tokens.push_back(id(token, "tokens"));
  for (const ParsedJson& pair : member(behaviour, "logits", golden.source)) {
    if (!pair.is_array() || pair.size() != 2 || !pair[1].is_number())
      throw Error::input("\"logits\" holds pairs of a token id and its logit").in(golden.source);
    golden.logits.emplace_back(id(pair[0], "logits"), pair[1].get<double>());
  }
}

// What names, versions and sampling habits have to do with no forward pass.
bool is_cosmetic(const std::string& key) {
  static const std::set<std::string, std::less<>> keys = {
      "_name_or_path",     "transformers_version", "torch_dtype", "dtype",       "use_cache",
      "initializer_range", "architectures",        "auto_map",    "_commit_hash"};
  return keys.contains(key);
}

void differ(const ParsedJson& here, const ParsedJson& there, const std::string& path,
            std::vector<std::string>& out) {
  if (here == there) return;
  if (!here.is_object() || !there.is_object()) {
    const auto shown = [](const ParsedJson& value) {
      const std::string text = value.dump(-1, ' ', false, ParsedJson::error_handler_t::replace);
      return text.size() > 60 ? text.substr(0, 57) + "…" : text;
    };
    out.push_back(fmt::format("{}: {}, not {}", path, shown(here), shown(there)));
    return;
  }
  const std::string prefix = path.empty() ? "" : path + ".";
  for (const auto& [key, value] : there.items()) {
    if (is_cosmetic(key)) continue;
    const auto found = here.find(key);
    if (found == here.end())
      out.push_back(fmt::format("{}{} is missing", prefix, key));
    else
      differ(*found, value, prefix + key, out);
  }
  for (const auto& [key, value] : here.items()) {
    if (!is_cosmetic(key) && !there.contains(key)) out.push_back(fmt::format("{}{} was added", prefix, key));
  }
}

// The bytes of a two-dimensional tensor with rows and columns exchanged, hashed.
std::string transposed_digest(const File& file, const CheckpointTensor& tensor) {
  const std::uint64_t rows = tensor.shape[0], columns = tensor.shape[1];
  const std::uint64_t size = tensor.bytes / (rows * columns);
  std::vector<std::byte> bytes(tensor.bytes), transposed(tensor.bytes);
  file.read_exactly(tensor.offset, bytes);
  for (std::uint64_t r = 0; r < rows; ++r) {
    for (std::uint64_t c = 0; c < columns; ++c)
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>((r * columns + c) * size), size,
                  transposed.begin() + static_cast<std::ptrdiff_t>((c * rows + r) * size));
  }
  return digest_of(DigestKind::sha256, transposed).hex();
}

bool is_transposed(const Checkpoint& checkpoint, const TensorDigest& here, const TensorDigest& recorded) {
  const CheckpointTensor* tensor = checkpoint.find(here.name);
  if (tensor == nullptr || tensor->shape.size() != 2 || tensor->bytes == 0 || tensor->bytes > kMostTransposed)
    return false;
  const std::uint64_t elements = tensor->shape[0] * tensor->shape[1];
  if (tensor->bytes % elements != 0 || tensor->shape[0] == 1 || tensor->shape[1] == 1) return false;
  const File file = File::open(checkpoint.files[tensor->file].path);
  return transposed_digest(file, *tensor) == recorded.sha256;
}

class TensorComparison {
 public:
  TensorComparison(const Golden& golden, const std::vector<TensorDigest>& here, const Checkpoint& checkpoint)
      : golden_(golden), here_(here), checkpoint_(checkpoint) {
    for (const auto& [name, tensor] : golden.tensors) recorded_as_.emplace(tensor.sha256, name);
  }

  // Most of what is in both is stored in another type or shape: converted since, and to be compared by
  // values.
  bool is_another_form() const {
    std::size_t both = 0, changed = 0;
    for (const TensorDigest& tensor : here_) {
      const auto recorded = golden_.tensors.find(tensor.name);
      if (recorded == golden_.tensors.end()) continue;
      ++both;
      changed += tensor.type != recorded->second.type || tensor.shape != recorded->second.shape ? 1 : 0;
    }
    return 4 * changed > both || both == 0;
  }

  Findings compare() {
    std::set<std::string_view> seen;
    for (const TensorDigest& tensor : here_) {
      seen.insert(tensor.name);
      const auto recorded = golden_.tensors.find(tensor.name);
      if (recorded == golden_.tensors.end())
        say("golden.extra", tensor.name, "is not in the record");
      else if (tensor.sha256 != recorded->second.sha256)
        say("golden.tensor", tensor.name, how_it_differs(tensor, recorded->second));
    }
    for (const auto& [name, tensor] : golden_.tensors) {
      if (!seen.contains(name)) say("golden.missing", name, "is in the record and not here");
    }
    if (found_.size() > kMostNamed) {
      const std::size_t more = found_.size() - kMostNamed;
      found_.resize(kMostNamed);
      found_.push_back({.code = "golden.more", .message = fmt::format("and {} tensors more", more)});
    }
    return std::move(found_);
  }

 private:
  std::string how_it_differs(const TensorDigest& here, const TensorDigest& recorded) const {
    if (here.type != recorded.type)
      return fmt::format("is {} and was {} when it was recorded", here.type, recorded.type);
    if (const auto other = recorded_as_.find(here.sha256); other != recorded_as_.end())
      return fmt::format("holds what {} held when it was recorded", other->second);
    if (is_transposed(checkpoint_, here, recorded)) return "is stored transposed: rows and columns exchanged";
    if (here.shape != recorded.shape) return "has another shape than when it was recorded";
    return "holds other bytes than when it was recorded";
  }
  void say(const char* code, const std::string& tensor, std::string message) {
    found_.push_back({.code = code, .message = std::move(message), .tensor = tensor});
  }

  const Golden& golden_;
  const std::vector<TensorDigest>& here_;
  const Checkpoint& checkpoint_;
  std::map<std::string, std::string> recorded_as_;  // name by digest
  Findings found_;
};

}  // namespace

std::vector<std::string> config_differences(const ParsedJson& here, const ParsedJson& there) {
  std::vector<std::string> out;
  differ(here, there, "", out);
  return out;
}

ParsedJson read_config_document(const std::string& path, int jobs) {
  const Checkpoint checkpoint = open_checkpoint(path, jobs);
  return checkpoint.config.empty() ? ParsedJson() : read_json(checkpoint.config);
}

Golden read_golden(const fs::path& file) {
  const ParsedJson document = read_json(file, {.max_bytes = kMostRecord});
  if (!document.is_object() || document.value("schema", ParsedJson()) != kSchema)
    throw Error::input("is no golden record")
        .in(file)
        .remedy("make one with 'assay check DIR --record FILE'");
  Golden golden{.source = file};
  if (const auto config = document.find("config"); config != document.end()) golden.config = *config;
  if (const auto tensors = document.find("tensors"); tensors != document.end()) {
    if (!tensors->is_object()) throw Error::input("its \"tensors\" is no object").in(file);
    for (const auto& [name, entry] : tensors->items())
      golden.tensors.emplace(name, read_tensor(name, entry, file));
  }
  if (const auto behaviour = document.find("behaviour"); behaviour != document.end())
    read_behaviour(*behaviour, golden);
  return golden;
}

std::optional<Golden> find_golden(const CheckSettings& settings) {
  if (!settings.record.empty()) return std::nullopt;
  if (!settings.golden.empty()) return read_golden(settings.golden);
  std::error_code ignored;
  const fs::path beside = (fs::is_directory(settings.path, ignored) ? fs::path(settings.path)
                                                                    : fs::path(settings.path).parent_path()) /
                          kGoldenName;
  if (!fs::is_regular_file(beside, ignored)) return std::nullopt;
  return read_golden(beside);
}

// Its config is among its metadata, in other words than the record's.
static bool is_gguf(const CheckSettings& settings) {
  return open_checkpoint(settings.path, settings.common.jobs).container == Checkpoint::Container::gguf;
}

Stage examine_golden(const CheckSettings& settings, const Golden& golden,
                     const std::vector<TensorDigest>& digests) {
  Stage stage{.name = "golden", .status = StageStatus::passed};
  const ParsedJson config = read_config_document(settings.path, settings.common.jobs);
  const bool configs = !golden.config.is_null() && !config.is_null();
  if (configs) {
    for (std::string& difference : config_differences(config, golden.config))
      stage.findings.push_back({.code = "golden.config",
                                .message = std::move(difference),
                                .file = "config.json",
                                .remedy = "bring the config.json that belongs to these weights"});
  } else if (!golden.config.is_null() && !is_gguf(settings)) {
    stage.findings.push_back({.code = "golden.config",
                              .message = "is in the record and not here",
                              .file = "config.json",
                              .remedy = "bring the config.json that belongs to these weights"});
  }
  if (!golden.tensors.empty() && !digests.empty()) {
    const Checkpoint checkpoint = open_checkpoint(settings.path, settings.common.jobs);
    TensorComparison comparison(golden, digests, checkpoint);
    if (comparison.is_another_form()) {
      std::erase_if(stage.findings, [](const Finding& finding) {
        return finding.message.starts_with("quantization_config");
      });
      stage.status = StageStatus::unproven;
      stage.summary = "stored in another form than the recorded one; compare the values with --against";
      settle(stage);
      return stage;
    }
    for (Finding& finding : comparison.compare()) stage.findings.push_back(std::move(finding));
  }
  stage.summary =
      fmt::format("{} tensors{} as {} has them", golden.tensors.size(), configs ? " and the config" : "",
                  escape_for_terminal(golden.source.filename().string()));
  settle(stage);
  return stage;
}

void write_golden(const fs::path& file, const CheckSettings& settings,
                  const std::vector<TensorDigest>& digests, const std::vector<TokenId>& tokens,
                  std::span<const double> logits) {
  Json document = {{"schema", kSchema}};
  if (const ParsedJson config = read_config_document(settings.path, settings.common.jobs); !config.is_null())
    document["config"] = Json::parse(config.dump());
  Json& tensors = document["tensors"] = Json::object();
  for (const TensorDigest& tensor : digests)
    tensors[tensor.name] = {{"type", tensor.type}, {"shape", tensor.shape}, {"sha256", tensor.sha256}};
  if (!tokens.empty()) {
    std::vector<TokenId> order(logits.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<TokenId>(i);
    const std::size_t kept = std::min(kLogitsKept, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                      [&](TokenId a, TokenId b) { return logits[a] > logits[b]; });
    Json pairs = Json::array();
    for (std::size_t i = 0; i < kept; ++i) pairs.push_back({order[i], logits[order[i]]});
    document["behaviour"] = {{"tokens", tokens}, {"logits", std::move(pairs)}};
  }
  AtomicFile out(file);
  out.write(dump_json(document, 1) + "\n");
  out.commit();
}

}  // namespace assay
