// How assay itself cuts a model over ranks (refimpl/ranks). What it refuses is asked of core/model/rank_grid.h.
#include "paramcount/engine_rules.h"

namespace assay {
namespace {

constexpr EngineVersion kOwnVersions[] = {{{0, 1, 0}}};

constexpr EngineRule kOwnRules[] = {
    {Rule::key_heads_repeated,
     "With fewer key and value heads than ranks, neighbouring ranks hold the same one.", "",
     "core/model/parallel_cut.cpp"},
    {Rule::latent_everywhere, "The latent of MLA is cached whole on every rank.", "",
     "refimpl/ranks/rank_cut.cpp"},
    {Rule::vocabulary_padded, "The vocabulary is padded to a multiple of 64, then cut evenly.", "",
     "core/model/parallel_cut.cpp"},
    {Rule::layers_to_middle,
     "Layers left over by pp go one each to the stages before the last, from the back.", "",
     "core/model/rank_grid.cpp: RankPlace::layers"},
};

}  // namespace

const EngineTable kOwnTable = {Engine::assay, "assay", kOwnVersions, kOwnRules};

}  // namespace assay
