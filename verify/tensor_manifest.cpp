#include "verify/tensor_manifest.h"

#include <fmt/format.h>

#include <cstdio>

#include "core/model/tensor_digests.h"
#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/message.h"
#include "core/system/output_paths.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::size_t kNotToldShown = 3;

Json to_json(const TensorDigests& made, const fs::path& path, const HeldAs& as) {
  Json tensors = Json::array(), not_told = Json::array();
  for (const TensorDigests::Entry& entry : made.tensors)
    tensors.push_back({{"name", entry.name},
                       {"dtype", name(entry.type)},
                       {"shape", entry.shape},
                       {"ranks", entry.ranks},
                       {"sha256", entry.sha256}});
  for (const NotHeld& one : made.not_told) not_told.push_back({{"name", one.name}, {"why", one.why}});
  Json document = {{"schema", kTensorListSchema},
                   {"model", path.string()},
                   {"engine", name(as.names)},
                   {"tp", as.grid.tp},
                   {"ep", as.grid.ep}};
  if (as.type) document["dtype"] = name(*as.type);
  document["tensors"] = std::move(tensors);
  document["not_told"] = std::move(not_told);
  return document;
}

// On stderr: stdout may be the list itself.
void explain(const TensorDigests& made, const HeldAs& as) {
  const auto say = [](const std::string& line) { write_message("assay: " + escape_for_terminal(line)); };
  say(fmt::format(
      "{} tensors {}, {} read", made.tensors.size(),
      as.names == HeldNames::stored ? "as stored" : fmt::format("as {} holds them", name(as.names)),
      human_bytes(made.bytes_read)));
  for (std::size_t i = 0; i < std::min(kNotToldShown, made.not_told.size()); ++i)
    say(fmt::format("not told: {} {}", made.not_told[i].name, made.not_told[i].why));
  if (made.not_told.size() > kNotToldShown)
    say(fmt::format("… and {} others that are not told", made.not_told.size() - kNotToldShown));
}

}  // namespace

int run_tensor_manifest(const fs::path& path, const HeldSettings& held, const std::string& output,
                        const CommonOptions& common) {
  check_grid(held.as.grid);
  check_outputs({output, common.json});
  const OpenedModel model(path, common.jobs);
  model.throw_errors();
  const TensorDigests made = tensor_digests(model, held.as, common.jobs, common.progress);
  if (made.interrupted) return kExitInterrupted;
  if (made.tensors.empty())
    throw Error::refused("none of its tensors can be told as an engine holds them").in(path);
  explain(made, held.as);
  const Json document = to_json(made, path, held.as);
  const std::string text = dump_json(document) + "\n";
  if (!output.empty())
    write_whole(output, text);
  else if (common.json.empty())
    std::fwrite(text.data(), 1, text.size(), stdout);
  Output(common.json).json(document);
  return kExitOk;
}

}  // namespace assay
