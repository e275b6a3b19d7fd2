#include "refimpl/models/model_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/model/gguf_keys.h"
#include "core/system/text.h"
#include "refimpl/models/model.h"
#include "refimpl/models/precision_note.h"

namespace assay {

std::vector<std::string> model_notes(const Weights& weights, Precision precision, std::string_view kernels) {
  std::vector<std::string> notes;
  const ModelConfig& config = weights.config();
  const ConfigKeys& keys = rule_for(weights.tree(), config).keys;
  if (weights.from_gguf()) {
    if (const auto names = unread_gguf_keys(weights.checkpoint(), config, keys); !names.empty())
      notes.push_back(escape_for_terminal(
          fmt::format("{}: not read: {}", config.source().filename().string(), fmt::join(names, ", "))));
  }
  const std::vector<std::string> unread = unread_keys(config, keys);
  if (!unread.empty())
    notes.push_back(escape_for_terminal(fmt::format(
        "{}: {} of transformers does not read {}, nor does assay", config.source().filename().string(),
        config.architecture().empty() ? config.model_type() : config.architecture(),
        fmt::join(unread, ", "))));
  if (weights.has_own_head())
    notes.emplace_back(
        "config.json ties the output head to the embedding, but the file holds another one: it is used, as "
        "transformers 5 does (4 uses the embedding)");
  if (std::string note = precision_note(weights, precision, kernels); !note.empty())
    notes.push_back(std::move(note));
  return notes;
}

}  // namespace assay
