#include "paramcount/page_data.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/model/stage_parts.h"
#include "core/numeric/ceil_div.h"
#include "paramcount/engine_rules.h"
#include "paramcount/render.h"

namespace assay {
namespace {

struct Storey {
  std::string attention = "none";  // what kind of token mixing the layer has
  std::uint64_t experts = 0, active_experts = 0;
  std::uint64_t mixing = 0, dense = 0, shared = 0, routed = 0;  // parameters
  std::uint64_t window = 0;
};

void name_attention(const ModuleTree& tree, std::vector<Storey>& storeys) {
  const auto at = [&](std::uint64_t layer) { return layer < storeys.size() ? &storeys[layer] : nullptr; };
  for (const AttentionGeometry& g : tree.attention) {
    for (const std::uint64_t layer : g.layers) {
      Storey* storey = at(layer);
      if (storey == nullptr) continue;
      const bool latent = g.kind == AttentionGeometry::Kind::latent;
      storey->attention = g.window != 0 ? "window attention" : latent ? "latent attention" : "attention";
      storey->window = g.window;
    }
  }
  for (const RecurrentGeometry& r : tree.recurrent) {
    for (const std::uint64_t layer : r.layers) {
      Storey* storey = at(layer);
      if (storey != nullptr)
        storey->attention = storey->attention == "none" ? r.title : storey->attention + " + " + r.title;
    }
  }
}

void add_to_storey(const TensorSpec& spec, const Occurrence& where, std::uint64_t each, Storey& storey) {
  switch (spec.part) {
    case Part::attention: storey.mixing += each; return;
    case Part::dense_mlp: storey.dense += each; return;
    case Part::shared_expert: storey.shared += each; return;
    case Part::routed_expert: break;
    default: return;
  }
  storey.routed += each;
  std::uint64_t experts = spec.stacked, active = spec.stacked_active;
  for (const Module* module : where.path) {
    if (module->repeat.over != Repeat::Over::experts) continue;
    experts = module->repeat.indices.size();
    active = module->repeat.active;
  }
  storey.experts = std::max(storey.experts, experts);
  storey.active_experts = std::max(storey.active_experts, active);
}

std::vector<Storey> storeys_of(const ModuleTree& tree) {
  std::vector<Storey> storeys(tree.layers);
  name_attention(tree, storeys);
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    const bool in_layers = std::any_of(where.path.begin(), where.path.end(), [](const Module* m) {
      return m->repeat.over == Repeat::Over::layers;
    });
    if (!where.main() || !in_layers || spec.storage != Storage::own) return;
    const std::vector<std::uint64_t> layers = layers_of(where);
    const std::uint64_t each = spec.elements.value() * (where.copies / layers.size());
    for (const std::uint64_t layer : layers) {
      if (layer < storeys.size()) add_to_storey(spec, where, each, storeys[layer]);
    }
  });
  return storeys;
}

Json floor_json(const ModuleTree& tree) {
  Json list = Json::array();
  for (const Storey& s : storeys_of(tree)) {
    list.push_back({{"attention", s.attention},
                    {"window", s.window},
                    {"experts", s.experts},
                    {"active_experts", s.active_experts},
                    {"mixing", s.mixing},
                    {"dense", s.dense},
                    {"shared", s.shared},
                    {"routed", s.routed}});
  }
  return list;
}

// The context the config says the model was made for; where it does not, 32,768.
std::uint64_t longest_context(const Model& model) {
  const ParsedJson& text = model.config.text();
  for (const char* key : {"max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length",
                          "max_sequence_length", "model_max_length"}) {
    const auto found = text.find(key);
    if (found == text.end() || !found->is_number_integer()) continue;
    const auto value = found->get<std::int64_t>();
    if (value >= 256 && value <= 100'000'000) return static_cast<std::uint64_t>(value);
  }
  return 32768;
}

constexpr std::uint64_t kCurvePoints = 48;

Json curve_json(const Model& model, const Question& question) {
  const std::uint64_t longest = std::max(longest_context(model), question.context);
  KvOptions options;
  options.bytes_per_value = kv_value_bytes(question.kv_dtype);
  Json points = Json::array();
  for (std::uint64_t i = 0; i <= kCurvePoints; ++i) {
    options.context = longest * i / kCurvePoints;
    const KvCache cache = kv_cache(model.tree, options);
    points.push_back(Json::array({options.context, cache.bytes}));
  }
  return {{"longest", longest}, {"dtype", question.kv_dtype}, {"points", points}};
}

struct Gpu {
  const char* name;
  std::uint64_t gigabytes;
};
// Memory as the makers state it, in 10^9 bytes.
constexpr Gpu kGpus[] = {{"RTX 4090", 24}, {"RTX 5090", 32}, {"L40S", 48},    {"A100", 80},   {"H100", 80},
                         {"H200", 141},    {"B200", 180},    {"MI300X", 192}, {"MI355X", 288}};
constexpr std::uint64_t kMostGpus = 64;
constexpr std::uint64_t kServedContext = 8192;

// The fewest GPUs, a power of two, on which a plan launches; null: not on 64.
Json fewest_gpus(const ModuleTree& tree, const WeightFormat& format, std::uint64_t weights,
                 std::uint64_t context, std::uint64_t memory) {
  PlanOptions options;
  options.engines = {Engine::vllm};
  options.format = format;
  options.gpu_memory = memory;
  options.context = context;
  const auto usable = static_cast<std::uint64_t>(static_cast<double>(memory) * options.usable);
  for (std::uint64_t n = 1; n <= kMostGpus; n *= 2) {
    if (weights / n > usable) continue;
    // One node: heads over its GPUs. Several: layers over the nodes, too.
    std::vector<Layout> layouts;
    for (std::uint64_t tp = n; tp >= 1; tp /= 2) layouts.push_back({tp, n / tp, 1, 1});
    for (Layout layout : layouts) {
      if (layout.pp > tree.layers) continue;
      for (const bool whole_experts : {false, true}) {
        if (whole_experts && (tree.experts == 0 || layout.tp == 1)) continue;
        layout.ep = whole_experts ? layout.tp : 1;
        const Plan plan = make_plan(tree, layout, options);
        if (plan.launches())
          return {{"gpus", n},
                  {"layout", layout.text()},
                  {"tokens", plan.tokens_that_fit},
                  {"bytes", plan.load.total()}};
      }
    }
  }
  return {};
}

Json machines_json(const Model& model) {
  struct Form {
    std::string title;
    WeightFormat format;
  };
  std::vector<Form> forms = {{"as stored: " + model.format.title, model.format}};
  const bool sixteen = model.format.kind == WeightFormat::Kind::plain;
  if (sixteen) forms.push_back({"FP8", *weight_format("fp8-channel")});
  if (sixteen || model.format.bits > 4) forms.push_back({"4 bits", *weight_format("nvfp4")});
  Json titles = Json::array(), gpus = Json::array();
  std::vector<std::uint64_t> weights;
  const std::uint64_t context = std::min(kServedContext, longest_context(model));
  for (const Form& form : forms) {
    weights.push_back(weight_bytes(model.tree, form.format).main);
    titles.push_back({{"title", form.title}, {"bytes", weights.back()}});
  }
  for (const Gpu& gpu : kGpus) {
    Json fits = Json::array();
    for (std::size_t i = 0; i < forms.size(); ++i)
      fits.push_back(
          fewest_gpus(model.tree, forms[i].format, weights[i], context, gpu.gigabytes * 1'000'000'000));
    gpus.push_back({{"name", gpu.name}, {"gigabytes", gpu.gigabytes}, {"fits", fits}});
  }
  return {{"engine", EngineAt(Engine::vllm).text()},
          {"context", context},
          {"most", kMostGpus},
          {"forms", titles},
          {"gpus", gpus}};
}

}  // namespace

std::string model_name(const Model& model) {
  const fs::path source = fs::absolute(model.source).lexically_normal();
  for (fs::path folder = source.parent_path(); folder.has_relative_path(); folder = folder.parent_path()) {
    std::string name = folder.filename().string();
    if (!name.starts_with("models--")) continue;
    name.erase(0, 8);
    if (const auto at = name.find("--"); at != std::string::npos) name.replace(at, 2, "/");
    return name;
  }
  const std::string file = source.filename().string();
  const bool says_more = !file.starts_with("config.") && file != "model.safetensors";
  std::string name = says_more ? source.stem().string() : source.parent_path().filename().string();
  return name.empty() ? model.tree.title : name;
}

Json page_data(const Model& model, const Question& question) {
  Json data = {
      {"name", model_name(model)}, {"floor", floor_json(model.tree)}, {"curve", curve_json(model, question)}};
  data["machines"] = model.tree.derived ? Json() : machines_json(model);
  return data;
}

}  // namespace assay
