// What names of files and tensors say: which tap, of which step, on which rank; and where in a forward pass.
//
//   step_3/tp1/layers.0.out.npy                              layers.0.out, step 3, tensor-parallel rank 1
//   TP0_PP1_Rank4_pid77/Pass00002.safetensors (SGLang)       its tensors, step 2, ranks 0, 1, 4
//   step=0___rank=1___dump_index=7___name=q___layer_id=3.npy (SGLang's dumper)    layers.3.q, step 0, rank 1
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay::dumps {

struct Place {
  std::optional<std::uint64_t> step, dp, pp, cp, tp, ep, rank;
  std::uint64_t occurrence = 0;  // of several under one name, in the order they were written
  friend auto operator<=>(const Place&, const Place&) = default;
};
std::string describe(const Place& place);  // "step 3, tp 1"; "" of none

struct ParsedName {
  std::string name;  // parts between '.', places taken out; may be empty
  Place place;
};
// `path`: relative, '/' between parts, without the file's extension.
ParsedName parse_path(std::string_view path);
// A tensor's own name: leading parts before '/' that name places are taken out.
ParsedName parse_tensor_name(std::string_view name);

// The order of a forward pass: embedding, layers by number and position in the block, final norm, logits.
// What is not known stands before a layer's output, or at the end.
struct ForwardKey {
  int stage = 0;  // before the layers, a layer, after them
  std::uint64_t layer = 0;
  int position = 0;
  std::string name;
  friend auto operator<=>(const ForwardKey&, const ForwardKey&) = default;
};
ForwardKey forward_key(std::string_view name);
inline constexpr int kLayerStage = 1;

// The name with its layer's number left out: "layers.*.attn_out"; as it is where there is none.
std::string kind_of(std::string_view name);
std::optional<std::uint64_t> layer_of(std::string_view name);

// What tensors of whole numbers are for, by their last word.
enum class Auxiliary { none, token_ids, positions, mask };
Auxiliary auxiliary_of(std::string_view name);

}  // namespace assay::dumps
