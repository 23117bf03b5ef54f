"""What examples/train.py is made of: a text, a model of it, and the strategies to train the model on many ranks."""
