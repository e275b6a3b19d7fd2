#include "core/formats/shard_index.h"

#include "core/formats/json.h"
#include "core/system/file.h"
#include "tests/fuzz/fuzz.h"

using namespace assay;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  const auto index = fuzz::accepted([&] { return parse_shard_index(text, "fuzz.index.json"); });
  if (!index) return 0;
  const std::vector<std::string> shards = index->shards();
  fuzz::require(std::is_sorted(shards.begin(), shards.end()), "shards are sorted");
  for (const std::string& shard : shards) {
    fuzz::require(is_safe_relative_path(shard) && shard.find('/') == std::string::npos,
                  "shards lie beside the index");
    if (const auto name = parse_shard_name(shard)) {
      fuzz::require(shard.starts_with(name->stem) && shard.ends_with(name->extension),
                    "a name's parts are its own");
    }
  }
  check_shard_numbering(shards);
  const Findings findings = check_shard_index(*index, "fuzz.index.json", {});
  fuzz::require(has_errors(findings) || shards.empty(), "shards that are not there are missed");

  // The event reader of indexes against the parser of documents, where both accept.
  const auto document = fuzz::accepted([&] {
    return parse_json(text, "fuzz.index.json", {1 << 20, 64, false});
  });
  if (!document) return 0;
  const ParsedJson map = ParsedJson(index->weight_map);
  fuzz::require(
      document->at("weight_map") == map || (index->weight_map.empty() && document->at("weight_map").empty()),
      "both JSON readers see the same map");
  return 0;
}
