#include "convert/equal_gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "convert/equal_exported.h"
#include "core/model/composed_tensor.h"
#include "core/model/gguf_export.h"
#include "core/model/gguf_import.h"
#include "core/model/gguf_own_keys.h"
#include "core/model/open_model.h"
#include "core/model/published_layout.h"
#include "core/model/stored_names.h"
#include "core/system/error.h"
#include "core/system/threads.h"

namespace assay {
namespace {

bool is_gguf(const Side& side) {
  return side.checkpoint.container == Checkpoint::Container::gguf;
}

class AcrossNames {
 public:
  AcrossNames(const Side& named, const Side& gguf, const GgufFamily& family, bool gguf_first)
      : named_(named), gguf_first_(gguf_first), reader_(gguf.reader, gguf.stored) {
    HfModel model;
    const ModelConfig config =
        ModelConfig::from_json(hf_config(gguf.checkpoint, family, gguf.stored, ElementType::F32, model),
                               gguf.checkpoint.files.front().path);
    for (DerivedTensor& tensor :
         hf_tensors(gguf.checkpoint, family, gguf.stored, config, describe(config), left_out_)) {
      std::string name = tensor.name;
      derived_.emplace(std::move(name), std::move(tensor));
    }
    factors_ = rope_factors(gguf.checkpoint, gguf.stored);
    if (named.checkpoint.config.empty()) return;
    said_ = describe_model(named.checkpoint);
    lookup_ = std::make_unique<TensorLookup>(said_->tree);
  }

  EqualReport run(const EqualOptions& options, Progress& progress) {
    const StoredTensors published = said_ ? under_published_names(named_.stored, said_->tree) : named_.stored;
    const auto& tensors = published.tensors;
    std::vector<std::optional<Difference>> found(tensors.size());
    std::vector<const DerivedTensor*> others(tensors.size());
    std::size_t passed_over = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const std::string name = counterpart(tensors[i].name);
      const auto other = derived_.find(name);
      if (other != derived_.end()) {
        others[i] = &other->second;
        compared_.insert(name);
      } else if (has_no_place(tensors[i].name, options)) {
        ++passed_over;
      } else {
        found[i] = only_named(tensors[i].name);
      }
    }
    parallel_for(options.jobs, tensors.size(), [&](std::size_t i) {
      if (others[i] != nullptr && !interrupted())
        found[i] = compare_with_made(named_, tensors[i], reader_, *others[i], gguf_first_, options.tolerance,
                                     progress);
    });
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (others[i] != nullptr || found[i]) ++report_.tensors;
      if (others[i] != nullptr) report_.elements += tensors[i].elements();
      if (found[i]) report_.differences.push_back(std::move(*found[i]));
    }
    for (const auto& [name, tensor] : derived_) {
      if (!compared_.contains(name)) only_in_gguf(name);
    }
    for (const std::string& name : left_out_) only_in_gguf(name);
    compare_rope();
    if (passed_over > 0)
      report_.notes.push_back(fmt::format("{} tensors are passed over: buffers, towers{}", passed_over,
                                          options.without_mtp ? ", multi-token prediction" : ""));
    return std::move(report_);
  }

 private:
  // Some checkpoints spell the start of every name differently.
  std::string canonical(const std::string& name) const {
    if (lookup_ == nullptr) return name;
    const auto found = lookup_->find(name);
    return found ? expand(found->spec->name, found->indices) : name;
  }

  // The language model of one that sees is named within that; a GGUF's stands by itself.
  static std::string by_itself(const std::string& name) {
    for (const auto& [within, alone] :
         {std::pair<std::string_view, std::string_view>{"model.language_model.", "model."},
          {"language_model.", ""}}) {
      if (name.starts_with(within)) return std::string(alone) + name.substr(within.size());
    }
    return name;
  }

  // Under which name of transformers the GGUF has it: a tied head that is stored all the same is the
  // embedding.
  std::string counterpart(const std::string& name) const {
    std::string own = canonical(name);
    if (std::string alone = by_itself(own); !derived_.contains(own) && derived_.contains(alone)) return alone;
    if (derived_.contains(own) || lookup_ == nullptr) return own;
    const auto found = lookup_->find(name);
    return found && found->spec->storage == Storage::tied ? expand(found->spec->same_as, found->indices)
                                                          : own;
  }

  bool has_no_place(const std::string& name, const EqualOptions& options) const {
    if (is_known_buffer(name)) return true;
    const auto found = lookup_ == nullptr ? std::nullopt : lookup_->find(name);
    return found &&
           (found->spec->storage == Storage::buffer || found->tower || (found->mtp && options.without_mtp));
  }

  Difference only_named(const std::string& name) const {
    const auto found = lookup_ == nullptr ? std::nullopt : lookup_->find(name);
    return {name,
            fmt::format("only in the {}{}", gguf_first_ ? "second" : "first",
                        found && found->mtp ? ": multi-token prediction (--drop-mtp passes over it)" : "")};
  }

  void only_in_gguf(const std::string& name) {
    ++report_.tensors;
    report_.differences.push_back({name, gguf_first_ ? "only in the first" : "only in the second"});
  }

  // What one side has as factors, the other as rope_scaling.
  void compare_rope() {
    constexpr float kSame = 1e-4F;  // float32 against float64, and another order of operations
    if (!said_) {
      if (!factors_.empty())
        report_.notes.emplace_back("rope_freqs.weight is not compared: there is no config.json");
      return;
    }
    const GgufFamily* family = gguf_family(said_->tree);
    if (family == nullptr) return;
    std::vector<float> asked = rope_frequency_factors(said_->config, *family);
    for (DerivedTensor& more : gguf_more_tensors(said_->config, *family))
      if (more.name == "rope_freqs.weight") asked = std::move(more.computed);
    const auto at = [](const std::vector<float>& factors, std::size_t i) {
      return i < factors.size() ? factors[i] : 1.0F;
    };
    for (std::size_t i = 0; i < std::max(asked.size(), factors_.size()); ++i) {
      if (std::abs(at(asked, i) - at(factors_, i)) <= kSame * std::abs(at(asked, i))) continue;
      ++report_.tensors;
      report_.differences.push_back(
          {"rope_freqs.weight",
           fmt::format("factor {} on rotary frequencies: {} in the GGUF, {} by config.json", i,
                       at(factors_, i), at(asked, i))});
      return;
    }
  }

  const Side& named_;
  bool gguf_first_;
  DerivedReader reader_;
  std::map<std::string, DerivedTensor> derived_;
  std::set<std::string> compared_;      // of these
  std::vector<std::string> left_out_;   // of the GGUF: what its architecture has no place for
  std::vector<float> factors_;          // rope_freqs.weight
  std::optional<DescribedModel> said_;  // of the other side, where it has a config
  std::unique_ptr<TensorLookup> lookup_;
  EqualReport report_;
};

}  // namespace

std::optional<Difference> compare_with_made(const Side& side, const LogicalTensor& own,
                                            const DerivedReader& maker, const DerivedTensor& made,
                                            bool made_first, const Tolerance& tolerance, Progress& progress) {
  if (own.shape != made.shape) {
    return Difference{
        own.name, fmt::format("[{}] against [{}]", fmt::join(own.shape, ", "), fmt::join(made.shape, ", "))};
  }
  const StoredReader reader(side.reader, own);
  const ReadRows as_stored = [&](std::uint64_t first, std::uint64_t count, std::span<float> out) {
    reader.decode_rows(first, count, out);
  };
  const ReadRows as_made = [&](std::uint64_t first, std::uint64_t count, std::span<float> out) {
    maker.read(made, first, count, out);
  };
  return compare_rows({own.name, own.all_rows(), own.columns, rows_read_together(own)},
                      made_first ? as_made : as_stored, made_first ? as_stored : as_made, tolerance,
                      progress);
}

std::optional<EqualReport> compare_with_gguf(const Side& a, const Side& b, const EqualOptions& options,
                                             Progress& progress) {
  if (is_gguf(a) == is_gguf(b)) return std::nullopt;
  const Side &gguf = is_gguf(a) ? a : b, &named = is_gguf(a) ? b : a;
  const GgufFamily* family = family_of_gguf(gguf.checkpoint);
  if (family == nullptr) return compare_exported(named, gguf, is_gguf(a), options, progress);
  return AcrossNames(named, gguf, *family, is_gguf(a)).run(options, progress);
}

}  // namespace assay
