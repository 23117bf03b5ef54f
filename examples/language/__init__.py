"""The parts of examples/train.py: a text, a model of it, and the strategies to train the model on many ranks."""
