// assay.paramcount/1, as docs/json.md describes it.
#include "core/system/json.h"
#include "core/system/text.h"
#include "paramcount/render.h"

namespace assay {
namespace {

Json rows_json(const std::vector<Row>& rows) {
  Json list = Json::array();
  for (const Row& row : rows) {
    list.push_back({{"name", row.title},
                    {"path", row.path},
                    {"part", row.part},
                    {"count", row.count},
                    {"params", row.params},
                    {"total", row.total},
                    {"active", row.active},
                    {"bytes", row.bytes},
                    {"formula", row.formula},
                    {"symbols", row.symbols},
                    {"mtp", row.mtp},
                    {"tower", row.tower},
                    {"children", rows_json(row.children)}});
  }
  return list;
}

Json totals_json(const Model& model) {
  const Totals& t = model.totals;
  return {{"total", t.total},
          {"active", t.active},
          {"active_known", knows_activation(model.tree)},
          {"active_without_embedding", t.active_without_embedding},
          {"matmul_active", t.matmul_active},
          {"mtp",
           {{"own", t.mtp_own},
            {"duplicates", t.mtp_duplicates},
            {"active", t.mtp_active},
            {"active_with_shared", t.mtp_active_with_shared}}},
          {"towers", t.towers},
          {"all", t.all()}};
}

Json model_json(const Model& model) {
  const ModuleTree& t = model.tree;
  return {{"source", model.source.string()},
          {"family", t.family},
          {"title", t.title},
          {"architecture", t.architecture},
          {"layers", t.layers},
          {"hidden_size", t.hidden_size},
          {"vocabulary", t.vocabulary},
          {"experts", t.experts},
          {"experts_per_token", knows_activation(t) ? Json(t.experts_per_token) : Json()},
          {"tied_embeddings", t.tied_embeddings},
          {"stored_as", model.format.title},
          {"bytes", model.bytes}};
}

Json tally_json(const StoredTally& tally) {
  return {{"tensors", tally.tensors}, {"elements", tally.elements}, {"bytes", tally.bytes}};
}

Json checkpoint_json(const Model& model) {
  const Reconciliation& r = *model.reconciliation;
  Json lines = Json::array(), types = Json::object();
  for (const ReconcileLine& line : r.lines)
    lines.push_back({{"what", line.what}, {"tensors", line.tensors}, {"elements", line.elements}});
  for (const auto& [type, tally] : r.types) types[std::string(name(type))] = tally_json(tally);
  Json total_size = nullptr;
  if (model.checkpoint->index && model.checkpoint->index->total_size)
    total_size = *model.checkpoint->index->total_size;
  return {{"stored", r.stored.elements},
          {"main", r.main.elements},
          {"mtp", r.mtp.elements},
          {"towers", r.towers.elements},
          {"scales", r.scales.elements},
          {"duplicates", r.duplicates.elements},
          {"buffers", r.buffers.elements},
          {"unpacked", r.unpacked},
          {"elsewhere", r.elsewhere.elements},
          {"extra", r.extra.elements},
          {"expected", r.expected},
          {"difference", r.difference},
          {"tensors", r.stored.tensors},
          {"bytes", r.stored.bytes},
          {"index_total_size", total_size},
          {"shards_here", r.shards_here},
          {"shards_told", r.shards_told},
          {"missing_tensors", r.missing_tensors},
          {"misshapen_tensors", r.misshapen_tensors},
          {"extra_tensors", r.extra.tensors},
          {"missing", r.missing},
          {"extra_names", r.extra_names},
          {"types", types},
          {"lines", lines}};
}

Json memory_json(const Model& model, const Question& question, const Answer& answer) {
  Json weights = Json::array();
  for (const WeightFormat& format : weight_formats()) {
    const WeightBytes bytes = weight_bytes(model.tree, format);
    weights.push_back({{"format", format.name},
                       {"title", format.title},
                       {"main", bytes.main},
                       {"mtp", bytes.mtp},
                       {"towers", bytes.towers}});
  }
  const KvCache& kv = answer.kv;
  const auto known = [&](std::uint64_t bytes) { return knows_cache(model.tree) ? Json(bytes) : Json(); };
  return {{"weights", weights},
          {"kv",
           {{"dtype", question.kv_dtype},
            {"bytes_per_token", known(kv.per_token)},
            {"bytes_per_token_beyond_windows", known(kv.per_token_beyond)},
            {"indexer_bytes_per_token", kv.indexer_per_token},
            {"expanded_bytes_per_token", kv.expanded_per_token},
            {"state_bytes_per_sequence", kv.state_per_sequence},
            {"state_bytes_of_convolutions", kv.state_convolutions},
            {"context", question.context},
            {"batch", question.batch},
            {"bytes", known(kv.bytes)}}},
          {"activations_estimate",
           {{"bytes", answer.activations.bytes}, {"formula", answer.activations.formula}}}};
}

Json compute_json(const Model& model, const Question& question, const Answer& answer) {
  const ComputeReport& c = answer.compute;
  Json rows = Json::array(), crossings = Json::array();
  for (const ComputeRow& row : c.rows)
    rows.push_back(
        {{"name", row.what}, {"decode", row.decode}, {"prefill", static_cast<double>(row.prefill)}});
  for (const Crossing& x : c.crossings) {
    crossings.push_back({{"layers", x.layers},
                         {"absorbed", x.absorbed},
                         {"window", x.window},
                         {"attention_equals_mlp", x.block_equals_mlp},
                         {"scores_equal_mlp", x.scores_equal_mlp},
                         {"scores_equal_matrices", x.scores_equal_linear}});
  }
  const Roofline r = roofline(model, question, answer);
  return {{"context", c.context},
          {"matmul_active", c.matmul_active},
          {"decode_flops", c.decode},
          {"decode_flops_absorbed", c.decode_absorbed},
          {"prefill_flops", c.prefill},
          {"modules", rows},
          {"crossings", crossings},
          {"attention_intensity", c.attention_intensity},
          {"roofline",
           {{"weight_bytes", r.weight_bytes},
            {"kv_bytes", r.kv_bytes},
            {"flops", r.flops},
            {"tokens_per_second", r.tokens_per_second},
            {"by_bandwidth", r.by_bandwidth},
            {"by_flops", r.by_flops}}}};
}

Json load_json(const Plan& plan) {
  const RankLoad& l = plan.load;
  return {{"layout", plan.layout.text()},
          {"tp", plan.layout.tp},
          {"pp", plan.layout.pp},
          {"dp", plan.layout.dp},
          {"ep", plan.layout.ep},
          {"gpus", plan.layout.ranks()},
          {"feasible", plan.launches()},
          {"fits_memory", plan.fits()},
          {"rank",
           {{"stage", l.stage},
            {"parameters", l.parameters},
            {"weight_bytes", l.weight_bytes},
            {"kv_bytes", l.kv_bytes},
            {"activation_bytes", l.activation_bytes},
            {"bytes", l.total()},
            {"usable_bytes", plan.budget},
            {"kv_tokens_that_fit", plan.tokens_that_fit}}}};
}

Json plan_json(const Answer& answer, const Question& question) {
  Json engines = Json::array();
  for (const EngineAt& engine : question.plan.engines)
    engines.push_back({{"name", title(engine.engine)}, {"version", engine.version.text()}});
  Json plan = load_json(*answer.plan), refusals = Json::array(), cuts = Json::array(), ways = Json::array();
  for (const Refusal& r : answer.plan->refusals) {
    refusals.push_back({{"engine", title(r.engine.engine)},
                        {"version", r.engine.version.text()},
                        {"rule", r.rule},
                        {"part", r.part},
                        {"tensors", r.tensors},
                        {"arithmetic", r.arithmetic},
                        {"message", r.message},
                        {"silent", r.silent}});
  }
  for (const CutRow& row : answer.cuts)
    cuts.push_back({{"tensor", row.tensor}, {"cut", row.how}, {"shape", row.shape}});
  for (const WayOut& way : answer.ways) {
    ways.push_back(
        {{"what", way.what}, {"outcome", way.outcome}, {"feasible", way.launches}, {"command", way.command}});
  }
  plan["engines"] = engines;
  if (answer.ranks.engine) {
    Json ranks = Json::array();
    for (const RankWeights& rank : answer.ranks.ranks)
      ranks.push_back({{"rank", rank.place.rank},
                       {"stage", rank.place.stage()},
                       {"parameters", rank.parameters},
                       {"weight_bytes", rank.bytes}});
    plan["ranks_of"] = answer.ranks.engine->text();
    plan["ranks"] = std::move(ranks);
  }
  if (!answer.ranks.why_none.empty()) plan["why_no_ranks"] = answer.ranks.why_none;
  plan["refusals"] = refusals;
  plan["notes"] = answer.plan->notes;
  plan["tensors"] = cuts;
  plan["ways_out"] = ways;
  return plan;
}

}  // namespace

Json render_json(const Model& model, const Question& question, const Answer& answer) {
  Json document = {{"schema", "assay.paramcount/1"},
                   {"verdict", verdict_line(model, answer)},
                   {"model", model_json(model)}};
  document.update(totals_json(model));
  document["modules"] = rows_json(model.rows);
  Json parts = Json::array(), not_counted = Json::array(), defaults = Json::array();
  for (const PartRow& part : model.parts)
    parts.push_back({{"name", part.title},
                     {"total", part.total},
                     {"active", part.active},
                     {"bytes", part.bytes},
                     {"beside", part.beside}});
  for (const NotCounted& part : model.tree.not_counted)
    not_counted.push_back(
        {{"what", part.what}, {"parameters", part.parameters ? Json(*part.parameters) : Json()}});
  for (const DefaultTaken& taken : model.tree.defaults)
    defaults.push_back({{"key", taken.key}, {"value", taken.value}});
  document["parts"] = parts;
  document["not_counted"] = not_counted;
  document["defaults"] = defaults;
  if (model.reconciliation) document["checkpoint"] = checkpoint_json(model);
  document["memory"] = memory_json(model, question, answer);
  document["compute"] = compute_json(model, question, answer);
  if (answer.plan) document["plan"] = plan_json(answer, question);
  if (answer.searched) {
    Json plans = Json::array();
    for (const Plan& plan : answer.found) plans.push_back(load_json(plan));
    document["plans"] = plans;
  }
  document["findings"] = to_json(model.findings);
  return document;
}

Json render_diff_json(const Model& left, const Model& right) {
  Json rows = Json::array();
  for (const DiffRow& row : diff_rows(left.rows, right.rows)) {
    rows.push_back({{"depth", row.depth},
                    {"name", row.title},
                    {"left", row.left ? Json(*row.left) : Json()},
                    {"right", row.right ? Json(*row.right) : Json()},
                    {"difference", static_cast<std::int64_t>(row.right.value_or(0)) -
                                       static_cast<std::int64_t>(row.left.value_or(0))},
                    {"left_formula", row.left_formula},
                    {"right_formula", row.right_formula}});
  }
  const auto side = [](const Model& model) {
    Json json = model_json(model);
    json.update(totals_json(model));
    return json;
  };
  return {
      {"schema", "assay.paramcount-diff/1"}, {"left", side(left)}, {"right", side(right)}, {"modules", rows}};
}

}  // namespace assay
