"""A tiny random model per family, with what `transformers` computes of it: the parts of `make_models.py`."""
