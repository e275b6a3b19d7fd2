#include "core/model/gguf_mix.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/system/error.h"

namespace assay {
namespace {

struct FileTypeInfo {
  std::string_view name;
  GgufFileType type;
  ElementType mostly;
};
constexpr FileTypeInfo kFileTypes[] = {
    {"F32", GgufFileType::F32, ElementType::F32},
    {"F16", GgufFileType::F16, ElementType::F16},
    {"BF16", GgufFileType::BF16, ElementType::BF16},
    {"Q8_0", GgufFileType::Q8_0, ElementType::Q8_0},
    {"Q6_K", GgufFileType::Q6_K, ElementType::Q6_K},
    {"Q5_K_M", GgufFileType::Q5_K_M, ElementType::Q5_K},
    {"Q5_K_S", GgufFileType::Q5_K_S, ElementType::Q5_K},
    {"Q5_1", GgufFileType::Q5_1, ElementType::Q5_1},
    {"Q5_0", GgufFileType::Q5_0, ElementType::Q5_0},
    {"Q4_K_M", GgufFileType::Q4_K_M, ElementType::Q4_K},
    {"Q4_K_S", GgufFileType::Q4_K_S, ElementType::Q4_K},
    {"Q4_1", GgufFileType::Q4_1, ElementType::Q4_1},
    {"Q4_0", GgufFileType::Q4_0, ElementType::Q4_0},
    {"IQ4_NL", GgufFileType::IQ4_NL, ElementType::IQ4_NL},
    {"IQ4_XS", GgufFileType::IQ4_XS, ElementType::IQ4_XS},
    {"MXFP4_MOE", GgufFileType::MXFP4_MOE, ElementType::MXFP4},
    {"Q3_K_L", GgufFileType::Q3_K_L, ElementType::Q3_K},
    {"Q3_K_M", GgufFileType::Q3_K_M, ElementType::Q3_K},
    {"Q3_K_S", GgufFileType::Q3_K_S, ElementType::Q3_K},
    {"Q2_K", GgufFileType::Q2_K, ElementType::Q2_K},
    {"Q2_0", GgufFileType::Q2_0, ElementType::Q2_0},
    {"TQ2_0", GgufFileType::TQ2_0, ElementType::TQ2_0},
    {"TQ1_0", GgufFileType::TQ1_0, ElementType::TQ1_0},
    {"Q1_0", GgufFileType::Q1_0, ElementType::Q1_0},
    {"MXFP4", GgufFileType::MXFP4, ElementType::MXFP4},
    {"NVFP4", GgufFileType::NVFP4, ElementType::NVFP4},
};

const FileTypeInfo& file_type_info(GgufFileType type) {
  for (const FileTypeInfo& info : kFileTypes) {
    if (info.type == type) return info;
  }
  throw Error::internal("no GGUF file type " + std::to_string(static_cast<std::uint32_t>(type)));
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// 12 of "blk.12.attn_q.weight"; -1 where the name has none.
int layer_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  int layer = -1;
  if (name.starts_with(kPrefix)) {
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), layer);
  }
  return layer;
}

enum class MixRole : std::uint8_t {
  output,
  token_embedding,
  attention_v,  // and what holds it: attn_qkv, MLA's attn_kv_b
  attention_k,
  attention_output,
  ffn_down,
  other,
};

MixRole role_of(std::string_view name) {
  if (name == "output.weight") return MixRole::output;
  if (name == "token_embd.weight" || name == "per_layer_token_embd.weight") return MixRole::token_embedding;
  for (const std::string_view part : {"attn_qkv.weight", "attn_kv_b.weight", "attn_v.weight"}) {
    if (contains(name, part)) return MixRole::attention_v;
  }
  if (contains(name, "attn_k.weight")) return MixRole::attention_k;
  if (contains(name, "attn_output.weight")) return MixRole::attention_output;
  if (contains(name, "ffn_down")) return MixRole::ffn_down;
  return MixRole::other;
}

// Small or delicate matrices, by a part of their name (tensor_allows_quantization): norms, expert routers,
// convolutions and time mixing of recurrent models, position and patch embeddings, codebooks.
constexpr std::string_view kKeptParts[] = {
    "_norm.weight",
    "ffn_gate_inp.weight",
    "ffn_gate_tid2eid.weight",
    "altup",
    "laurel",
    "per_layer_model_proj",
    "ssm_conv1d",
    "shortconv.conv.weight",
    "indexer.k_proj.weight",
    "indexer.q_proj.weight",
    "time_mix_first.weight",
    "time_mix_w0.weight",
    "time_mix_w1.weight",
    "time_mix_w2.weight",
    "time_mix_v0.weight",
    "time_mix_v1.weight",
    "time_mix_v2.weight",
    "time_mix_a0.weight",
    "time_mix_a1.weight",
    "time_mix_a2.weight",
    "time_mix_g1.weight",
    "time_mix_g2.weight",
    "time_mix_decay_w1.weight",
    "time_mix_decay_w2.weight",
    "time_mix_lerp_fused.weight",
    "attn_rel_b.weight",
    ".position_embd",
    "sam.pos_embd",
    "sam.neck.",
    "sam.net_",
    ".rel_pos",
    ".patch_embd",
    ".patch_merger",
    "a.rvq.codebook",
    "mm.a.code_embd",
};
// Trailing ones do not count: ggml has four dimensions always.
bool is_matrix(const MixTensor& tensor) {
  const auto& dimensions = tensor.dimensions;
  return std::any_of(dimensions.begin() + std::min<std::size_t>(1, dimensions.size()), dimensions.end(),
                     [](std::uint64_t n) { return n != 1; });
}

bool may_be_quantized(const MixArchitecture& architecture, const MixTensor& tensor) {
  const std::string_view name = tensor.name;
  const auto is_part = [&](std::string_view part) { return contains(name, part); };
  if (!is_matrix(tensor) || !name.ends_with("weight")) return false;
  if (name == "position_embd.weight" || name == "token_types.weight") return false;
  return std::ranges::none_of(architecture.kept_parts, is_part) && std::ranges::none_of(kKeptParts, is_part);
}

// What a tensor gets whose columns are no whole number of blocks.
ElementType fitting(ElementType type, const MixTensor& tensor) {
  constexpr std::uint32_t kSmallBlock = 32;
  const std::uint64_t columns = tensor.dimensions.front();
  const auto fits = [&](ElementType t) { return columns % info(t).block_elements == 0; };
  if (fits(type)) return type;
  switch (type) {
    case ElementType::IQ4_XS: type = ElementType::IQ4_NL; break;
    case ElementType::Q2_0:
    case ElementType::Q2_K:
    case ElementType::Q3_K:
    case ElementType::TQ1_0:
    case ElementType::TQ2_0: type = ElementType::Q4_0; break;
    case ElementType::Q4_K: type = ElementType::Q5_0; break;
    case ElementType::Q5_K: type = ElementType::Q5_1; break;
    case ElementType::Q6_K: type = ElementType::Q8_0; break;
    default:
      if (info(type).block_elements <= kSmallBlock) break;
      throw Error::refused("its rows of " + std::to_string(columns) + " are no whole number of blocks of " +
                           std::to_string(info(type).block_elements) + ", and " + std::string(name(type)) +
                           " has no stand-in")
          .tensor(tensor.name);
  }
  return fits(type) ? type : ElementType::F16;
}

bool is_70b(const MixModel& model, const MixArchitecture& architecture) {
  const std::uint32_t layers = model.layers - std::min(model.layers, model.mtp_layers);
  return architecture.layers_of_70b != 0 && layers == architecture.layers_of_70b &&
         (!architecture.only_grouped_is_70b || (model.experts != 8 && model.heads != model.heads_kv));
}

class Mixer {
 public:
  Mixer(GgufFileType file, const MixModel& model, std::span<const MixTensor> tensors,
        const MixChoices& choices)
      : file_(file), model_(model), architecture_(mix_architecture(model.architecture)), choices_(choices) {
    for (const MixTensor& tensor : tensors) {
      const MixRole role = role_of(tensor.name);
      attention_v_count_ += role == MixRole::attention_v ? 1 : 0;
      has_output_ |= role == MixRole::output;
    }
  }

  ElementType next(const MixTensor& tensor) {
    if (!may_be_quantized(architecture_, tensor)) return tensor.stored;
    const ElementType mostly = gguf_default_type(file_);
    if (info(mostly).block_elements == 1) return mostly;
    const auto by_hand = choices_.by_hand ? choices_.by_hand(tensor.name) : std::nullopt;
    return fitting(by_hand ? *by_hand : chosen(tensor, mostly), tensor);
  }

 private:
  bool is(std::initializer_list<GgufFileType> files) const {
    return std::find(files.begin(), files.end(), file_) != files.end();
  }
  // Query heads that share a key and value head.
  std::uint32_t queries_per_key() const { return model_.heads_kv == 0 ? 0 : model_.heads / model_.heads_kv; }
  // The first and the last eighth of the layers, and of the others every third.
  static bool more_bits(std::int64_t layer, std::int64_t layers) {
    return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
  }

  ElementType chosen(const MixTensor& tensor, ElementType mostly) {
    const MixRole role = role_of(tensor.name);
    for (const std::string_view part : architecture_.eight_bit_parts) {
      if (contains(tensor.name, part)) return ElementType::Q8_0;
    }
    if (role == MixRole::output || (role == MixRole::token_embedding && !has_output_)) {
      return for_output(tensor, mostly);
    }
    if (file_ == GgufFileType::MXFP4_MOE) return for_mxfp4(tensor, role);
    if (role == MixRole::token_embedding &&
        is({GgufFileType::TQ1_0, GgufFileType::TQ2_0, GgufFileType::Q2_0}))
      return ElementType::Q4_K;
    switch (role) {
      case MixRole::attention_v: return for_attention_v(mostly);
      case MixRole::attention_k: return model_.experts == 8 ? ElementType::Q8_0 : mostly;
      case MixRole::attention_output: return for_attention_output(mostly);
      case MixRole::ffn_down: return for_ffn_down(tensor, mostly);
      default: return mostly;
    }
  }

  // Also the embedding where it serves as output.
  ElementType for_output(const MixTensor& tensor, ElementType mostly) const {
    const bool fits = tensor.dimensions.front() % info(mostly).block_elements == 0;
    if (file_ == GgufFileType::MXFP4_MOE || architecture_.lean || !fits) {
      return ElementType::Q8_0;
    }
    return mostly == ElementType::Q8_0 ? ElementType::Q8_0 : ElementType::Q6_K;
  }

  // The experts' stacked matrices.
  ElementType for_mxfp4(const MixTensor& tensor, MixRole role) const {
    const bool stacked = tensor.dimensions.size() > 2 && tensor.dimensions[2] > 1;
    const bool is_ffn =
        role == MixRole::ffn_down ||
        (role == MixRole::other && (contains(tensor.name, "ffn_up") || contains(tensor.name, "ffn_gate")));
    return stacked && (!architecture_.stacked_attention || is_ffn) ? ElementType::MXFP4 : ElementType::Q8_0;
  }

  ElementType for_attention_v(ElementType mostly) {
    const std::int64_t i = attention_v_seen_++;
    if (model_.experts == 8) return ElementType::Q8_0;  // small beside eight experts
    ElementType type = mostly;
    switch (file_) {
      case GgufFileType::Q2_K: type = queries_per_key() >= 4 ? ElementType::Q4_K : ElementType::Q3_K; break;
      case GgufFileType::Q3_K_M: type = i < 2 ? ElementType::Q5_K : ElementType::Q4_K; break;
      case GgufFileType::Q3_K_L: type = ElementType::Q5_K; break;
      case GgufFileType::IQ4_NL:
      case GgufFileType::IQ4_XS:
        if (queries_per_key() >= 4) type = ElementType::Q5_K;
        break;
      case GgufFileType::Q4_K_M:
      case GgufFileType::Q5_K_M:
        if (more_bits(i, attention_v_count_)) type = ElementType::Q6_K;
        break;
      case GgufFileType::Q4_K_S:
        if (i < 4) type = ElementType::Q5_K;
        break;
      default: break;
    }
    // Eight query heads share these: an eighth of attn_q's size.
    const bool is_small = type == ElementType::Q3_K || type == ElementType::Q4_K;
    return is_70b(model_, architecture_) && is_small ? ElementType::Q5_K : type;
  }

  ElementType for_attention_output(ElementType mostly) const {
    if (architecture_.lean) {
      return file_ == GgufFileType::Q3_K_L ? ElementType::Q4_K : mostly;
    }
    if (model_.experts == 8) {
      const bool raised =
          is({GgufFileType::Q2_K, GgufFileType::Q3_K_S, GgufFileType::Q3_K_M, GgufFileType::IQ4_NL,
              GgufFileType::Q4_K_S, GgufFileType::Q4_K_M, GgufFileType::IQ4_XS});
      return raised ? ElementType::Q5_K : mostly;
    }
    switch (file_) {
      case GgufFileType::Q2_K: return ElementType::Q3_K;
      case GgufFileType::Q3_K_M: return ElementType::Q4_K;
      case GgufFileType::Q3_K_L: return ElementType::Q5_K;
      default: return mostly;
    }
  }

  ElementType for_ffn_down(const MixTensor& tensor, ElementType mostly) {
    const std::int64_t n = model_.layers;
    std::int64_t i = ffn_down_seen_++;
    if (model_.experts > 1) {  // their tensors do not come layer by layer
      i = layer_of(tensor.name);
      if (i < 0 || i >= n) {
        throw Error::input("its name holds no layer below " + std::to_string(n)).tensor(tensor.name);
      }
    }
    const bool lean = architecture_.lean;
    switch (file_) {
      case GgufFileType::Q2_K: return ElementType::Q3_K;
      case GgufFileType::Q3_K_M:
        if (i < n / 16) return ElementType::Q5_K;
        return !lean || more_bits(i, n) ? ElementType::Q4_K : ElementType::Q3_K;
      case GgufFileType::Q3_K_L: return lean ? ElementType::Q4_K : ElementType::Q5_K;
      case GgufFileType::Q4_K_M:
        if (!more_bits(i, n)) return mostly;
        return lean && i >= n / 16 ? ElementType::Q5_K : ElementType::Q6_K;
      case GgufFileType::IQ4_NL:
      case GgufFileType::IQ4_XS: return i < n / 8 && !choices_.importance ? ElementType::Q5_K : mostly;
      // With an importance matrix the first layers suffer in types without a minimum.
      case GgufFileType::Q4_0: return i < n / 8 && choices_.importance ? ElementType::Q4_1 : mostly;
      case GgufFileType::Q5_0: return i < n / 8 && choices_.importance ? ElementType::Q5_1 : mostly;
      case GgufFileType::Q5_K_M: return more_bits(i, n) ? ElementType::Q6_K : mostly;
      case GgufFileType::Q4_K_S: return !lean && i < n / 8 ? ElementType::Q5_K : mostly;
      default: return mostly;
    }
  }

  GgufFileType file_;
  const MixModel& model_;
  const MixArchitecture architecture_;
  const MixChoices& choices_;
  bool has_output_ = false;
  std::int64_t attention_v_count_ = 0, attention_v_seen_ = 0, ffn_down_seen_ = 0;
};

}  // namespace

std::string_view name(GgufFileType type) {
  return file_type_info(type).name;
}

ElementType gguf_default_type(GgufFileType type) {
  return file_type_info(type).mostly;
}

const std::vector<GgufFileType>& gguf_file_types() {
  static const std::vector<GgufFileType> types = [] {
    std::vector<GgufFileType> all;
    for (const FileTypeInfo& info : kFileTypes) all.push_back(info.type);
    return all;
  }();
  return types;
}

std::optional<GgufFileType> gguf_file_type_from_text(std::string_view text) {
  std::string upper(text);
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
  if (upper == "Q3_K" || upper == "Q4_K" || upper == "Q5_K") upper += "_M";
  for (const FileTypeInfo& info : kFileTypes) {
    if (info.name == upper) return info.type;
  }
  return std::nullopt;
}

bool gguf_tensor_order(std::string_view a, std::string_view b) {
  return std::tuple(layer_of(a), a) < std::tuple(layer_of(b), b);
}

std::vector<ElementType> gguf_mix(GgufFileType type, const MixModel& model,
                                  std::span<const MixTensor> tensors, const MixChoices& choices) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return gguf_tensor_order(tensors[a].name, tensors[b].name);
  });
  Mixer mixer(type, model, tensors, choices);
  std::vector<ElementType> types(tensors.size());
  for (const std::size_t i : order) types[i] = mixer.next(tensors[i]);
  return types;
}

}  // namespace assay
