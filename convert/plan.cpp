#include "convert/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "convert/config_rewrite.h"
#include "convert/layout.h"
#include "convert/merge.h"
#include "convert/mtp.h"
#include "convert/output_check.h"
#include "convert/partial_folder.h"
#include "convert/ranks.h"
#include "convert/reshard.h"
#include "convert/roles.h"
#include "convert/strays.h"
#include "core/model/composed_tensor.h"
#include "core/model/fused_sets.h"
#include "core/model/published_layout.h"
#include "core/model/stored_checks.h"
#include "core/numeric/ceil_div.h"
#include "core/system/error.h"
#include "core/system/name_filter.h"
#include "core/system/text.h"

namespace assay {
namespace {

bool is_float16(ElementType type) {
  return type == ElementType::BF16 || type == ElementType::F16;
}

// A block becomes another where one divides the other, or where there is but one scale along the dimension.
bool can_reblock(std::uint64_t scales, std::uint64_t from, std::uint64_t to) {
  return scales <= 1 || from % to == 0 || to % from == 0;
}

// Where config.json describes a known architecture, its names; what nobody has described keeps its own.
// Quantized experts are linear layers of their own in every engine's form, whatever their publisher stacks.
StoredTensors published(const Checkpoint& checkpoint, StoredTensors stored, bool quantizes,
                        const NameFilter& filter) {
  const auto tree = tree_of(checkpoint);
  if (!tree) return stored;
  StoredTensors named = under_published_names(std::move(stored), *tree);
  if (!quantizes) return named;
  return with_experts_apart(std::move(named), *tree,
                            [&](std::string_view name) { return filter.accepts(name); });
}

class Planner {
 public:
  Planner(const fs::path& in, const ConvertOptions& options)
      : options_(options), filter_(options.include, options.exclude) {
    plan_.spec = parse_spec(options.to, options.int8_range);
    plan_.checkpoint = open_checkpoint(in, options.jobs);
    std::error_code error;
    plan_.from_folder = fs::is_directory(in, error);
    if (plan_.checkpoint.container != Checkpoint::Container::safetensors)
      throw Error::input("convert reads safetensors; this is a GGUF").in(in);
    take_findings();
    plan_.quantization = read_quantization(plan_.checkpoint);
    plan_.stored = find_stored(plan_.checkpoint, plan_.quantization);
    plan_.findings.insert(plan_.findings.end(), plan_.stored.findings.begin(), plan_.stored.findings.end());
    if (options.mtp != Mtp::keep) select_mtp(plan_, options.mtp);
    leave_out_strays(plan_);
    if (plan_.spec.kind == Spec::Kind::cast || plan_.spec.kind == Spec::Kind::quantize)
      plan_.stored = published(plan_.checkpoint, std::move(plan_.stored),
                               plan_.spec.kind == Spec::Kind::quantize, filter_);
  }

  ConversionPlan run() {
    if (!plan_.feasible()) return std::move(plan_);
    choose();
    if (!plan_.feasible()) return std::move(plan_);
    place();
    hold_against_config();
    if (!plan_.feasible()) return std::move(plan_);
    if (options_.grid.tp > 1) {
      const auto ranks = std::make_shared<RankPlan>(plan_, options_.grid, plan_.findings);
      if (!plan_.feasible()) return std::move(plan_);
      ranks->measure(plan_, options_.jobs);
      plan_.file_bytes =
          std::accumulate(ranks->file_bytes().begin(), ranks->file_bytes().end(), std::uint64_t{0});
      plan_.ranks = ranks;
    }
    return std::move(plan_);
  }

 private:
  void take_findings() {
    for (Finding finding : plan_.checkpoint.findings) {
      const bool about_missing =
          finding.severity == Severity::error &&
          (finding.code == "index.shard_missing" || finding.code == "index.tensor_missing" ||
           finding.code == "index.number_missing");
      if (about_missing && options_.allow_incomplete) finding.severity = Severity::warning;
      if (about_missing && !options_.allow_incomplete)
        finding.remedy = "complete the checkpoint, or convert what is there with --allow-incomplete";
      plan_.findings.push_back(std::move(finding));
    }
  }

  void fault(std::string code, const std::string& tensor, std::string message, std::string remedy = {}) {
    plan_.findings.push_back(tensor_error(std::move(code), tensor, std::move(message), std::move(remedy)));
  }

  void choose() {
    std::optional<Roles> roles;
    if (plan_.spec.kind == Spec::Kind::quantize && !plan_.stored.any_quantized) {
      roles.emplace(plan_.checkpoint);
      plan_.roles_from = roles->source();
    }
    if (roles) warn_of_stacks();
    std::size_t acted = 0;
    for (std::uint32_t i = 0; i < plan_.stored.tensors.size(); ++i) {
      const LogicalTensor& tensor = plan_.stored.tensors[i];
      Work work{i, WorkAction::copy, {}, {}};
      if (wanted(tensor, roles)) {
        if (filter_.accepts(tensor.name))
          set_action(tensor, work);
        else if (tensor.quantized())
          left_quantized(tensor);
      }
      if (is_put_together(tensor) && work.action == WorkAction::copy) set_plain(tensor, work);
      acted += work.action != WorkAction::copy ? 1 : 0;
      plan_.works.push_back(std::move(work));
    }
    if (plan_.spec.encoder && plan_.spec.encoder->needs_whole_amax()) share_scales();
    if (acted == 0 && plan_.spec.kind != Spec::Kind::keep && plan_.feasible()) note_nothing_to_do();
  }

  // What is in that form already is copied; what cannot be brought into it is refused.
  void note_nothing_to_do() {
    const auto& tensors = plan_.stored.tensors;
    const bool reblocks = plan_.spec.kind == Spec::Kind::reblock;
    const bool there_already = options_.include.empty() && options_.exclude.empty() &&
                               plan_.spec.kind != Spec::Kind::quantize &&
                               std::any_of(tensors.begin(), tensors.end(), [&](const LogicalTensor& tensor) {
                                 return reblocks ? tensor.quantized() : tensor.form.codes == plan_.spec.type;
                               });
    fault("convert.nothing_to_do", "",
          there_already
              ? fmt::format("every tensor is as {} has it already: they are copied", plan_.spec.text)
              : fmt::format("no tensor here is changed by {}", plan_.spec.text));
    if (there_already) plan_.findings.back().severity = Severity::warning;
  }

  // What engines fuse keeps one scale for the whole of it (core/model/fused_sets.h).
  void share_scales() {
    for (const FusedSet& set : find_fused_sets(plan_.stored.tensors)) {
      std::vector<std::uint32_t> quantized;
      for (const std::uint32_t member : set.members) {
        if (plan_.works[member].action == WorkAction::quantize) quantized.push_back(member);
      }
      if (quantized.size() < 2) continue;
      for (const std::uint32_t work : quantized)
        plan_.works[work].fused = static_cast<std::uint32_t>(plan_.fused.size());
      plan_.fused.push_back(std::move(quantized));
    }
  }

  // Most of a model whose experts are stacked would stay large unsaid.
  void warn_of_stacks() {
    std::uint64_t count = 0, elements = 0;
    const LogicalTensor* first = nullptr;
    for (const LogicalTensor& tensor : plan_.stored.tensors) {
      const bool is_stack = tensor.shape.size() == 3 && is_plain_float(tensor.form.codes) &&
                            tensor.name.find("expert") != std::string::npos && filter_.accepts(tensor.name);
      if (!is_stack) continue;
      if (first == nullptr) first = &tensor;
      ++count;
      elements += tensor.elements();
    }
    if (first == nullptr) return;
    plan_.findings.push_back(
        {.severity = Severity::warning,
         .code = "convert.stacked",
         .message = fmt::format("{} tensors of stacked experts, {} values, stay as they are: only "
                                "two-dimensional weights are quantized",
                                count, with_thousands(elements)),
         .file = {},
         .tensor = first->name,
         .offset = {},
         .remedy = {}});
  }

  bool wanted(const LogicalTensor& tensor, const std::optional<Roles>& roles) const {
    switch (plan_.spec.kind) {
      case Spec::Kind::keep: return false;
      case Spec::Kind::reblock: return tensor.quantized();
      case Spec::Kind::quantize:
        return roles ? is_plain_float(tensor.form.codes) && roles->quantizable(tensor) : tensor.quantized();
      case Spec::Kind::cast: break;
    }
    if (tensor.quantized()) return true;
    if (plan_.checkpoint.tensors[tensor.codes].type == ElementType::C64) return false;  // stays complex
    if (!is_plain_float(tensor.form.codes) || tensor.form.codes == plan_.spec.type) return false;
    // Beside quantized weights, F32 is a choice that casting them does not undo; so is the routing bias.
    if (is_float16(tensor.form.codes)) return true;
    return !plan_.stored.any_quantized && !tensor.name.ends_with("e_score_correction_bias");
  }

  void left_quantized(const LogicalTensor& tensor) {
    fault("convert.two_forms", tensor.name,
          fmt::format("it would stay {} beside others that become {}, which config.json cannot say",
                      form_name(tensor), plan_.spec.text),
          "leave the quantized tensors to the conversion");
  }

  // Under its own name it lies nowhere, so that it cannot be copied.
  static void set_plain(const LogicalTensor& tensor, Work& work) {
    if (tensor.quantized()) return;  // refused above
    work.action = WorkAction::cast;
    work.to = name(tensor.form.codes);
  }

  void set_action(const LogicalTensor& tensor, Work& work) {
    const Spec& spec = plan_.spec;
    if (spec.kind == Spec::Kind::reblock) return set_reblock(tensor, work);
    if (spec.kind == Spec::Kind::cast) {
      work.action = WorkAction::cast;
      work.to = name(spec.type);
      return;
    }
    if (tensor.shape.size() != 2)
      return fault("convert.stacked", tensor.name, "only two-dimensional weights are quantized");
    if (tensor.rows == 0 || tensor.columns == 0)
      return fault("convert.empty", tensor.name, "an empty matrix cannot be quantized");
    if (const auto why = plan_.spec.encoder->refuses(tensor))
      return fault("convert.blocks_do_not_divide", tensor.name, *why, "leave it out with --exclude");
    work.action = is_recoding(tensor) ? WorkAction::recode : WorkAction::quantize;
    work.to = plan_.spec.encoder->form(tensor);
  }

  // FP8 with the zero, the NaN and the exponents of fnuz, from FP8 without, in the same blocks: the codes
  // stay.
  bool is_recoding(const LogicalTensor& tensor) const {
    const auto wanted = plan_.spec.encoder->quantizer(tensor.rows, tensor.columns);
    if (!wanted) return false;
    const bool is_pair =
        (tensor.form.codes == ElementType::F8_E4M3 && wanted->codes == ElementType::F8_E4M3FNUZ) ||
        (tensor.form.codes == ElementType::F8_E5M2 && wanted->codes == ElementType::F8_E5M2FNUZ);
    if (!is_pair || tensor.composed || tensor.input_factors || tensor.form.kind != FormKind::scaled ||
        wanted->rounding != ScaleRounding::none || !options_.scales_from.empty())
      return false;
    return tensor.form.block_rows == wanted->block_rows && tensor.form.block_columns == wanted->block_columns;
  }

  void set_reblock(const LogicalTensor& tensor, Work& work) {
    const Spec& spec = plan_.spec;
    const bool has_blocks = tensor.form.kind == FormKind::scaled && !tensor.composed &&
                            plan_.checkpoint.tensors[*tensor.scale].shape.size() >= 2 &&
                            !(tensor.form.block_rows == 1 && tensor.form.block_columns == tensor.columns);
    if (!has_blocks || !can_reblock(tensor.scale_rows(), tensor.form.block_rows, spec.block_rows) ||
        !can_reblock(tensor.scale_columns(), tensor.form.block_columns, spec.block_columns)) {
      return fault("convert.blocks_do_not_divide", tensor.name,
                   fmt::format("{} cannot become {}x{} without changing values", form_name(tensor),
                               spec.block_rows, spec.block_columns),
                   "take blocks that divide the present ones");
    }
    if (tensor.form.block_rows == spec.block_rows && tensor.form.block_columns == spec.block_columns) return;
    work.action = WorkAction::reblock;
    work.to = fmt::format("{} {}x{}", name(tensor.form.codes), spec.block_rows, spec.block_columns);
  }

  // --- where everything lies -------------------------------------------------------------------------------

  void place() {
    plan_.shards.resize(plan_.checkpoint.files.size());
    for (std::size_t i = 0; i < plan_.shards.size(); ++i) {
      plan_.shards[i].name = plan_.checkpoint.files[i].name;
      plan_.shards[i].metadata = plan_.checkpoint.files[i].metadata;
    }
    for (std::uint32_t i = 0; i < plan_.works.size(); ++i) add_outputs(i);
    close_gaps(plan_);
    if (options_.max_shard_size > 0) cut_into_shards(plan_, options_.max_shard_size);
    lay_out(plan_, options_.jobs);
  }

  void keep(std::uint32_t place) {
    const CheckpointTensor& stored = plan_.checkpoint.tensors[place];
    put(stored.file, {stored.name, stored.type, stored.shape, OutputTensor::Source::stored, place});
  }

  // Every output comes through here, and is marked with the work it belongs to.
  void put(std::uint32_t file, OutputTensor output) {
    output.work = placing_;
    plan_.shards[file].tensors.push_back(std::move(output));
  }

  void add_outputs(std::uint32_t at) {
    placing_ = at;
    const Work& work = plan_.works[at];
    const LogicalTensor& tensor = plan_.stored.tensors[work.tensor];
    const std::uint32_t beside = plan_.checkpoint.tensors[tensor.codes].file;
    const Spec& spec = plan_.spec;
    switch (work.action) {
      case WorkAction::copy:
      case WorkAction::reblock:
        for (const std::uint32_t part : tensor.places()) {
          if (work.action == WorkAction::copy || part != tensor.scale) keep(part);
        }
        if (work.action == WorkAction::reblock) {
          const CheckpointTensor& scale = plan_.checkpoint.tensors[*tensor.scale];
          std::vector<std::uint64_t> shape(scale.shape.begin(), scale.shape.end() - 2);
          shape.push_back(ceil_div(tensor.rows, spec.block_rows));
          shape.push_back(ceil_div(tensor.columns, spec.block_columns));
          put(scale.file, {scale.name, scale.type, std::move(shape), OutputTensor::Source::scales, at});
        }
        return;
      case WorkAction::cast:
        put(beside, {tensor.name, spec.kind == Spec::Kind::cast ? spec.type : tensor.form.codes, tensor.shape,
                     OutputTensor::Source::values, at});
        return;
      case WorkAction::recode:
      case WorkAction::quantize: break;
    }
    std::uint32_t part = 0;
    for (EncodedPart& made : plan_.spec.encoder->parts(tensor)) {
      OutputTensor output{tensor.name + made.suffix, made.type, std::move(made.shape),
                          made.is_scale ? OutputTensor::Source::scales : OutputTensor::Source::codes, at};
      output.part = part++;
      put(beside, std::move(output));
    }
  }

  void hold_against_config() {
    if (plan_.checkpoint.config.empty() || options_.mtp == Mtp::only) return;
    const RewrittenConfig config = rewrite_config(plan_, options_);
    Findings found =
        check_output_against_config(plan_, plan_.checkpoint.root, config.text, options_.allow_incomplete);
    std::move(found.begin(), found.end(), std::back_inserter(plan_.findings));
  }

  const ConvertOptions& options_;
  NameFilter filter_;
  ConversionPlan plan_;
  std::uint32_t placing_ = 0;
};

}  // namespace

std::string_view name(WorkAction action) {
  switch (action) {
    case WorkAction::copy: return "copy";
    case WorkAction::reblock: return "reblock";
    case WorkAction::recode: return "recode";
    case WorkAction::cast: return "cast";
    case WorkAction::quantize: return "quantize";
  }
  return "";
}

bool ConversionPlan::lossless() const {
  return !gguf && std::all_of(works.begin(), works.end(), [](const Work& work) {
    return work.action != WorkAction::cast && work.action != WorkAction::quantize;
  });
}

fs::path ConversionPlan::folder_of(const fs::path& out) const {
  return is_folder ? out : parent_of_output(out);
}

ConversionPlan make_plan(const fs::path& in, const ConvertOptions& options) {
  return options.merge ? make_merge_plan(in, options) : Planner(in, options).run();
}

}  // namespace assay
