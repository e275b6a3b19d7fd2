#include "core/model/gguf_loaded.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::string_view kWindow = "attention.sliding_window",
                           kWindows = "attention.sliding_window_pattern";

const GgufLoaded* loaded_by(std::string_view architecture) {
  const auto table = gguf_loaded_table();
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const GgufLoaded& row) { return row.architecture == architecture; });
  return found == table.end() ? nullptr : &*found;
}

const gguf::KeyValue* key_of(const std::vector<gguf::KeyValue>& keys, std::string_view architecture,
                             std::string_view name) {
  const std::string wanted = fmt::format("{}.{}", architecture, name);
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const gguf::KeyValue& key) { return key.key == wanted; });
  return found == keys.end() ? nullptr : &*found;
}

// "blk.3.attn_q.bias": "attn_q" of "bias".
std::string_view stem_of(std::string_view name, std::string_view kind) {
  if (!name.ends_with(kind) || name.size() <= kind.size() + 1) return {};
  name.remove_suffix(kind.size() + 1);
  if (name.starts_with("blk.")) name.remove_prefix(name.find('.', 4) + 1);
  return name;
}

bool lists(std::string_view words, std::string_view wanted) {
  for (std::size_t begin = 0; begin < words.size();) {
    const std::size_t end = std::min(words.find(' ', begin), words.size());
    if (words.substr(begin, end - begin) == wanted) return true;
    begin = end + 1;
  }
  return false;
}

void require_biases(const GgufLoaded& row, const std::vector<GgufTensor>& tensors) {
  std::set<std::string_view> names;
  for (const GgufTensor& tensor : tensors) names.insert(tensor.made.name);
  for (const std::string_view name : names) {
    if (const auto stem = stem_of(name, "bias");
        !stem.empty() && !lists(row.biases, stem) && !lists(row.biases, fmt::format("{}!", stem)))
      throw Error::refused(
          fmt::format("llama.cpp's {} has no such bias, and loads no file that has it", row.architecture))
          .tensor(std::string(name));
    if (const auto stem = stem_of(name, "weight");
        !stem.empty() && lists(row.biases, fmt::format("{}!", stem))) {
      const std::string bias =
          fmt::format("{}.bias", name.substr(0, name.size() - std::string_view(".weight").size()));
      if (!names.contains(bias))
        throw Error::refused(
            fmt::format("llama.cpp's {} asks for {}, which this model has not", row.architecture, bias));
    }
  }
}

void require_head(const GgufLoaded& row, const std::vector<GgufTensor>& tensors) {
  const bool has_head = std::any_of(tensors.begin(), tensors.end(), [](const GgufTensor& tensor) {
    return tensor.made.name == "output.weight";
  });
  if (has_head && row.head_is_embedding)
    throw Error::refused(
        fmt::format("tie_word_embeddings is false, and llama.cpp's {} takes the embedding for the head",
                    row.architecture))
        .tensor("output.weight");
  if (!has_head && row.asks_head)
    throw Error::refused(fmt::format("the head is the embedding, and llama.cpp's {} asks for one of its own",
                                     row.architecture));
}

void require_ropes(const GgufLoaded& row, const std::vector<GgufTensor>& tensors) {
  for (const GgufTensor& tensor : tensors) {
    const std::string& name = tensor.made.name;
    const bool left_out = (name == "rope_freqs.weight" && !row.loads_rope_freqs) ||
                          (name == "rope_factors_long.weight" && !row.loads_rope_factors);
    if (left_out)
      throw Error::refused(
          fmt::format("frequencies are stretched one by one, and llama.cpp's {} loads no file that says so",
                      row.architecture))
          .tensor(name);
  }
}

void require_widths(const GgufLoaded& row, const ModuleTree& tree) {
  for (const AttentionGeometry& g : tree.attention) {
    if (g.kind != AttentionGeometry::Kind::heads) continue;
    if (row.heads_fill_width && g.heads * g.qk_head_dim != tree.hidden_size)
      throw Error::refused(
          fmt::format("{} heads of {} are not the hidden width {}, as llama.cpp's {} takes for granted",
                      g.heads, g.qk_head_dim, tree.hidden_size, row.architecture));
    if (row.keys_as_queries && g.heads != g.kv_heads)
      throw Error::refused(
          fmt::format("{} heads have {} of keys and values, and llama.cpp's {} has as many of both", g.heads,
                      g.kv_heads, row.architecture));
  }
}

std::vector<bool> windowed_layers_of(const ModuleTree& tree) {
  std::vector<bool> windowed(tree.layers);
  for (const AttentionGeometry& g : tree.attention) {
    for (const std::uint64_t layer : g.layers) {
      if (layer < windowed.size()) windowed[layer] = g.window != 0;
    }
  }
  return windowed;
}

// Where the file has no list of them, llama.cpp has windows in all layers but every so manieth.
void require_windows(const GgufLoaded& row, const ModuleTree& tree, const std::vector<gguf::KeyValue>& keys) {
  if (row.window_period == 0 || key_of(keys, row.architecture, kWindows) != nullptr) return;
  const gguf::KeyValue* window = key_of(keys, row.architecture, kWindow);
  const auto* width = window == nullptr ? nullptr : std::get_if<std::uint64_t>(&window->value);
  const bool has_windows = window == nullptr ? row.windowed_without_key : width == nullptr || *width != 0;
  const std::vector<bool> windowed = windowed_layers_of(tree);
  for (std::uint64_t layer = 0; layer < windowed.size(); ++layer) {
    const bool taken = has_windows && (layer + (row.full_first ? 0 : 1)) % row.window_period != 0;
    if (windowed[layer] == taken) continue;
    throw Error::refused(
        fmt::format("layer {} {}, and a GGUF cannot say so: llama.cpp's {} has {}", layer,
                    windowed[layer] ? "has a window" : "sees everything", row.architecture,
                    has_windows ? fmt::format("windows in all layers but every {}{}", row.window_period,
                                              row.window_period == 2 ? "nd" : "th")
                                : "no windows here"));
  }
}

void require_even_rotation(const GgufLoaded& row, const std::vector<gguf::KeyValue>& keys) {
  const gguf::KeyValue* width = key_of(keys, row.architecture, "rope.dimension_count");
  const auto* count = width == nullptr ? nullptr : std::get_if<std::uint64_t>(&width->value);
  if (count != nullptr && *count % 2 != 0)
    throw Error::refused(
        fmt::format("{} dimensions of a head rotate, and llama.cpp rotates an even number", *count));
}

void require_gating(const GgufLoaded& row, const ModuleTree& tree, const std::vector<gguf::KeyValue>& keys) {
  if (!row.asks_gating || tree.experts == 0 ||
      key_of(keys, row.architecture, "expert_gating_func") != nullptr)
    return;
  throw Error::refused(fmt::format(
      "config.json does not say how experts are scored (scoring_func), and llama.cpp's {} asks for it",
      row.architecture));
}

}  // namespace

void require_loadable(std::string_view architecture, const ModuleTree& tree,
                      const std::vector<GgufTensor>& tensors, const std::vector<gguf::KeyValue>& keys) {
  const GgufLoaded* row = loaded_by(architecture);
  if (row == nullptr) return;
  require_biases(*row, tensors);
  require_head(*row, tensors);
  require_ropes(*row, tensors);
  require_widths(*row, tree);
  require_windows(*row, tree, keys);
  require_even_rotation(*row, keys);
  require_gating(*row, tree, keys);
}

std::string windows_left_out(std::string_view architecture, const ModuleTree& tree,
                             const std::vector<gguf::KeyValue>& keys) {
  const GgufLoaded* row = loaded_by(architecture);
  if (row == nullptr || row->window_period != 0 || row->all_windowed ||
      key_of(keys, architecture, kWindows) != nullptr)
    return {};
  for (const AttentionGeometry& g : tree.attention) {
    if (g.window != 0)
      return fmt::format(
          "windows of {} tokens are left out: llama.cpp's {} has none, and computes something else beyond",
          g.window, architecture);
  }
  return {};
}

}  // namespace assay
