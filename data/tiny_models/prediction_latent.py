"""Layers for multi-token prediction of HY4, dots3-note and GLM-5.3-Flash, as vLLM 0.32 has them (models/hy_v4/nvidia/mtp.py,
models/dots3_note/nvidia/mtp.py, models/glm5next/common/mtp.py): the residual is one stream where the model's are several, an
indexer is the layer's own; dots3-note's have a window, a dense MLP and a table of embeddings of their own.
"""

from . import kin, prediction_kin
from .prediction_kin import LAST, Around, drawn, longer


def hy_v4(seed):
    config = drawn("hy_v4", seed, num_nextn_predict_layers=2)
    count = config["num_hidden_layers"]
    config.setdefault("indexer_types", ["full" if i == 0 or (i - 1) % 4 == 0 else "shared" for i in range(count)])
    return config, longer(config, indexer_types="full", mlp_layer_types=config["mlp_layer_types"][-1])


def glm5_next(seed):
    config = drawn("glm5_next", seed, num_nextn_predict_layers=2)
    kind = kin.text_of(config)["mlp_layer_types"][-1]
    return config, longer(config, layer_types="indexed_attention", indexer_types="full", mlp_layer_types=kind)


def dots3_note(seed):
    """The second says what its layers attend by, the others that there is one with a window."""
    config = drawn("dots3_note_text", seed, num_nextn_predict_layers=1)
    long = longer(config, layer_types="sliding_attention", mlp_layer_types="dense")
    if seed.endswith("1"):
        config |= {"num_nextn_predict_layers": 2, "mtp_layer_types": ["full_attention", "sliding_attention"]}
        long = longer(config, mlp_layer_types="dense", layer_types="")
        long["layer_types"][-2:] = config["mtp_layer_types"]
    return config, long


prediction_kin.FAMILIES |= {
    "hy_v4": (hy_v4, Around(at="model.mtp_layers.{n}.")),
    "glm5_next": (glm5_next, Around(at="model.language_model.layers.{at}.", **LAST)),
    "dots3_note_text": (dots3_note, Around(table="model.mtp.embed_tokens", **LAST)),
}
