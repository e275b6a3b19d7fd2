"""The parts of train_tinylm.py: the text, the model, the checkpoint, the measurements."""
